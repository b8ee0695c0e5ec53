"""The pure heart: values, rules, evaluation, lifecycle, planning. No I/O, no clock, no logging."""
