"""Resources of the stand-in SDK."""
