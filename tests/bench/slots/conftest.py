"""What the benchmarks of slots share."""

import pytest

from tests.bench.slots.fleet import Fleet


@pytest.fixture(scope="session")
def fleet_of():
    """Makes a fleet."""
    return Fleet
