"""Prints the digest of the dependencies that pyproject.toml states; the lock files name it."""

import hashlib
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def stated() -> tuple[list[str], list[str]]:
    """(what the program needs, what builds it)."""
    values = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return sorted(values["project"]["dependencies"]), sorted(values["build-system"]["requires"])


def digest() -> str:
    """One line for both."""
    needed, building = stated()
    return hashlib.sha256("\n".join([*needed, "", *building]).encode()).hexdigest()


if __name__ == "__main__":
    print(digest())
