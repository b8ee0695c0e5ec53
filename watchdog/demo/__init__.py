"""The stand-in cloud and the demo that runs the real daemon against it."""
