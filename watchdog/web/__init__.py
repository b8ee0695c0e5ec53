"""Status page, API and health endpoints. Empty until its issue."""
