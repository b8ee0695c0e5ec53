"""From YAML and the environment to core values, every problem with file:line:column."""
