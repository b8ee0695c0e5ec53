"""Which of Apprise's service classes speaks for a URL; loads that one, not all of them.

Apprise finds a class by importing its 189 service modules, which takes 0.2 s of a start and 10 MiB for as
long as the process lives. A look into their texts says which one or two can be meant, and only these are
imported. What is not found so (a service added otherwise, a package without sources, a plain web address)
is asked of Apprise's own manager, which loads everything. Knows nothing of channels and messages.
"""

import functools
import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import apprise
import apprise.plugins
from apprise.manager_plugins import NotificationManager
from apprise.plugins import url_to_dict

Plugin = type[apprise.NotifyBase]

_FOLDER = Path(apprise.plugins.__file__).parent


@functools.cache
def plugin_of(schema: str) -> Plugin | None:
    """Return the class of a URL's schema (lower case); None = no service has it."""
    for name in _candidates(schema):
        module = _imported(f"{apprise.plugins.__name__}.{name}")
        for own in vars(module).values():
            if isinstance(own, type) and issubclass(own, apprise.NotifyBase) and schema in _schemas(own):
                return own
    manager = every_plugin()
    return cast(Plugin, manager[schema]) if schema in manager else None


def parsed(url: str) -> dict[str, Any] | None:
    """Return a URL as its service's constructor arguments; None = nothing can be made of it.

    Plugins parse with code of their own and may raise anything.
    """
    schema, separator, _ = url.partition("://")
    plugin = plugin_of(schema.lower()) if separator else None
    found: dict[str, Any] | None
    if plugin is None:
        found = url_to_dict(url, secure_logging=True)  # type: ignore[no-untyped-call]  # half typed
    else:
        found = plugin.parse_url(url.replace("/#", "/%23"))  # as `url_to_dict` does
    return found


@functools.cache
def every_plugin() -> Any:
    """Return Apprise's own manager with all services loaded (takes up to a second)."""
    manager: Any = NotificationManager()  # type: ignore[no-untyped-call]  # Apprise is only half typed
    with _quietly():
        manager.load_modules()
    return manager


def _candidates(schema: str) -> Iterator[str]:
    """The modules that have a protocol and name this schema; read anew, since it happens once a channel."""
    if not schema.isalnum():
        return
    words = (f'"{schema}"'.encode(), f"'{schema}'".encode())
    for path in sorted(_FOLDER.rglob("*.py")):
        name = path.relative_to(_FOLDER).parts[0].removesuffix(".py")
        if name.startswith(("_", "base")):
            continue
        text = path.read_bytes()
        if b"protocol" in text and any(word in text for word in words):
            yield name


def _imported(name: str) -> Any:
    with _quietly():
        return importlib.import_module(name)


def _schemas(plugin: Plugin) -> set[str]:
    """Return the schemas of a class; Apprise's method for it wants the class where objects go."""
    return set(plugin.schemas(plugin))  # type: ignore[arg-type, no-untyped-call]  # half typed


def _quietly() -> warnings.catch_warnings:
    """Loading tries modules that Python is about to drop; not our users' business."""
    return warnings.catch_warnings(action="ignore", category=DeprecationWarning)
