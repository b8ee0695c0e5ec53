"""Numbered, append-only SQL files: `0001_….sql` leads to schema version 1. A released file never changes."""
