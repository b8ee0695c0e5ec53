"""One file per system that answers queries; one registry line each."""
