"""The locks name every dependency that pyproject.toml states, with hashes, and no registry."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.lock", "requirements-build.lock")
_PINNED = re.compile(r"^(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^ ;\\]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def digesting() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lock_digest", ROOT / "tests" / "lock_digest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pinned(name: str) -> list[tuple[str, Version]]:
    """(name, version) of every line; of some packages there is one for each range of Python versions."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [(match["name"], Version(match["version"])) for match in _PINNED.finditer(text)]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_in_step_with_what_is_stated(name: str, digesting: ModuleType) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert f"# {digesting.digest()}\n" in text, "dependencies have changed: run .ci/lock"


@pytest.mark.parametrize(("lock", "part"), [(LOCKS[0], 0), (LOCKS[1], 1)])
def test_what_is_stated_is_locked_to_a_version_that_fits(lock: str, part: int, digesting: ModuleType) -> None:
    locked = pinned(lock)
    stated = [Requirement(text) for text in digesting.stated()[part]]
    assert stated
    for wanted in stated:
        assert wanted.marker is None or wanted.marker.evaluate(default_environment())
        versions = [version for name, version in locked if name == canonicalize_name(wanted.name)]
        assert versions
        assert all(version in wanted.specifier for version in versions)


@pytest.mark.parametrize("name", LOCKS)
def test_every_version_has_hashes_and_no_registry_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert len(blocks) == len(pinned(name)) > 2
    for block in blocks:
        assert "--hash=sha256:" in block, block.splitlines()[0]
    assert "://" not in text
    assert "index" not in text.replace("pyproject", "")
