"""Values that stay out of the rule file, and out of everything we print.

Owns where `${NAME}` is looked up (environment, `.env`, secrets directories), how it is filled in, and the
book of all values that must never be shown. Never puts a value into a message.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from watchdog.config.report import Mark, Report, shorten
from watchdog.config.suggest import near
from watchdog.config.yaml_nodes import Entry, ListNode, MapNode, Node, ScalarNode
from watchdog.core.redaction import Redactor, url_secrets

MAX_SECRET_FILE = 1 << 16

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)\}?")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<fallback>:-.*)?\Z", re.DOTALL)
_NEAR_NAME = 0.8


class Names(Mapping[str, str]):
    """Where `${NAME}` is looked up: the environment, then `.env` files, then secrets directories.

    A secrets directory holds one file a name (`/run/secrets/TEAM_CHAT_URL`), in lower case too.
    An empty value counts as missing. Files are read when they are asked for.
    """

    def __init__(
        self, environ: Mapping[str, str], *, dotenv: Sequence[Path] = (), directories: Sequence[Path] = ()
    ) -> None:
        self._environ = environ
        self._dotenv = [_read_dotenv(path) for path in dotenv]
        self._directories = tuple(directories)
        self.unreadable: dict[str, str] = {}  # name → why its file could not be read

    def __getitem__(self, name: str) -> str:
        for values in (self._environ, *self._dotenv):
            if values.get(name):
                return values[name]
        for directory in self._directories:
            for spelled in (name, name.lower()):
                value = self._read_secret(name, directory / spelled)
                if value:
                    return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for values in (self._environ, *self._dotenv) for name in values))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read_secret(self, name: str, path: Path) -> str:
        try:
            with path.open("rb") as file:
                text = file.read(MAX_SECRET_FILE).decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            self.unreadable[name] = f"{path} cannot be read: {why}"
            return ""
        return text.removesuffix("\n").removesuffix("\r")


def dotenv_values(path: Path) -> dict[str, str | None]:
    """Return what a `.env` file sets, if there is one; None for a name without a value.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8 text.
    """
    if not path.exists():
        return {}
    import dotenv  # here: most daemons have no such file

    return dotenv.dotenv_values(path, interpolate=False)


def _read_dotenv(path: Path) -> dict[str, str]:
    try:
        values = dotenv_values(path)
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: value for name, value in values.items() if value}


class SecretBook:
    """Remembers every value that must not be shown. What it may look like elsewhere is `core.redaction`."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._redactor = Redactor()

    def add(self, value: str) -> None:
        """Remember a value; of a URL, its tokens and passwords too."""
        found = {value, *(url_secrets(value) if "://" in value else ())}
        if not found <= self._values:
            self._values |= found
            self._redactor = Redactor(self._values)

    def absorb(self, other: "SecretBook") -> None:
        """Remember everything that another book does, too."""
        if not other._values <= self._values:
            self._values |= other._values
            self._redactor = Redactor(self._values)

    def redact(self, text: str) -> str:
        """Return the text with every remembered value masked."""
        return self._redactor.mask(text)

    @property
    def redactor(self) -> Redactor:
        """A redactor of everything remembered so far."""
        return self._redactor


def expand(node: Node, names: Mapping[str, str], book: SecretBook, report: Report) -> Node:
    """Return the tree with `${NAME}`, `${NAME:-default}` and `$${` filled in, in scalars only.

    What came from outside is remembered in `book`; a missing name is an error.
    """
    return _Expansion(names, book, report).node(node)


class _Expansion:
    def __init__(self, names: Mapping[str, str], book: SecretBook, report: Report) -> None:
        self._names = names
        self._book = book
        self._report = report
        self._done: dict[int, Node] = {}  # an aliased node is filled in once

    def node(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._done[id(node)] = self._fill(node)
        return self._done[id(node)]

    def _fill(self, node: Node) -> Node:
        if isinstance(node, ScalarNode):
            return self._scalar(node) if "${" in node.text else node
        if isinstance(node, ListNode):
            return ListNode(mark=node.mark, items=tuple(map(self.node, node.items)))
        return MapNode(
            mark=node.mark,
            entries=tuple(Entry(key=entry.key, value=self.node(entry.value)) for entry in node.entries),
        )

    def _scalar(self, node: ScalarNode) -> ScalarNode:
        pieces: list[str] = []
        expanded = broken = False
        end = 0
        for match in _REFERENCE.finditer(node.text):
            pieces.append(node.text[end : match.start()])
            end = match.end()
            if match["inside"] is None:
                pieces.append("${")
                continue
            value, fallback = self._value(match, node.mark)
            broken = broken or value is None
            expanded = expanded or not fallback
            pieces.append(value or "")
        text = "".join(pieces) + node.text[end:]
        return replace(node, text=text, plain=False, expanded=expanded, broken=broken)

    def _value(self, match: re.Match[str], mark: Mark) -> tuple[str | None, bool]:
        """Return what one reference stands for (None: reported), and whether that is the file's default."""
        inside = _INSIDE.match(match["inside"])
        if inside is None or not match[0].endswith("}"):
            hint = "write ${NAME} or ${NAME:-default}, and $${ for the characters themselves"
            self._report.error(mark, f"{shorten(match[0])} is no reference to a variable", hint)
            return None, False
        value = self._names.get(inside["name"])
        if value:
            self._book.add(value)
            return value, False
        if inside["fallback"] is not None:
            return inside["fallback"][2:], True
        self._report.error(mark, f"{inside['name']} is not set", missing_hint(inside["name"], self._names))
        return None, False


def missing_hint(name: str, names: Mapping[str, str]) -> str:
    """Return what to do about a name that nothing defines. Tells names and reasons, never a value."""
    unreadable = names.unreadable.get(name) if isinstance(names, Names) else None
    if unreadable:
        return unreadable
    similar = near(name, names, cutoff=_NEAR_NAME)
    if similar and similar != name:
        return f"{similar} is set: did you mean that?"
    return "set it in the environment, in a .env file, or as a file of that name in the secrets directory"
