"""SQLite: one writer, WAL, numbered migrations."""
