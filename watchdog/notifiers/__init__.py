"""Channels: Apprise and the console."""
