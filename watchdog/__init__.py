"""watchdog: tells people what their long GPU training runs are doing.

Holds the version and nothing else; nobody imports names from the package root.
"""

__version__ = "0.1.0"
