"""Engines behind core's protocols: RE2 patterns, Jinja2 templates."""
