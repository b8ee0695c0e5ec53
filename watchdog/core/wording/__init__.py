"""The words of every message, one module per language, all of one shape (`shape.Wording`)."""
