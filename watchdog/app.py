"""The composition root: builds everything from the configuration and runs it in one TaskGroup."""
