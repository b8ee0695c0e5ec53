"""Property tests draw the same examples on every machine, and none is judged by how long it takes.

To search further, with other examples each time: `pytest --hypothesis-profile=search tests/properties`.
"""

from hypothesis import settings

settings.register_profile("pinned", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None)
settings.load_profile("pinned")
