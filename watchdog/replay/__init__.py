"""The engine's own slot function on a virtual clock."""
