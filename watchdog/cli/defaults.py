"""Words that several verbs use in their help."""

DEFAULT_FILE = "$JOB_WATCHDOG_RULES, else ./rules.yaml, else /etc/job-watchdog/rules.yaml"
