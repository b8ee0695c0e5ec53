"""YAML text to nodes that know where they stand: file, line and column of every key and value.

Owns decoding, the limits against hostile files, anchors, merge keys and duplicate keys. A scalar stays text
here; whether `10` may be a duration is for `kinds`. Whatever the bytes, the answer is a tree or Problems.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from watchdog.config.report import Mark, Report, shorten, split_lines
from watchdog.config.yaml_errors import explain

MAX_BYTES = 1 << 20
MAX_DEPTH = 40
MAX_NODES = 100_000  # after aliases are followed

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_PRINTABLE_CONTROLS = "\t\n\r\x85"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalarNode:
    """One scalar. `raw` is what the file says, `text` the same with `${NAME}` filled in."""

    mark: Mark
    text: str
    raw: str
    plain: bool  # written without quotes, so YAML might read it as something else than text
    expanded: bool = False  # holds a value from outside: never to be shown
    broken: bool = False  # a name in it is missing; already reported
    offset: int | None = None  # columns from `mark` to the first character, where the text stands as it is

    @property
    def shown(self) -> str:
        """What a message may quote: the file's own words, cut to a readable length."""
        return shorten(self.raw)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListNode:
    """A sequence."""

    mark: Mark
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One `key: value`."""

    key: ScalarNode
    value: "Node"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapNode:
    """A mapping; its keys are unique, merged ones come last."""

    mark: Mark
    entries: tuple[Entry, ...]


Node = ScalarNode | ListNode | MapNode


def parse(content: str | bytes, report: Report) -> Node | None:
    """Return the tree of a one-document YAML text, or None with the reasons in `report`.

    A tree may come back with problems (duplicate keys), so that these are reported together with all others.
    """
    text = _decode(content, report)
    if text is None:
        return None
    builder = _Builder(report, _mark_at(text, len(text)))
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if not builder.take(event):
                return None
    except yaml.YAMLError as error:
        explain(error, text, report)
        return None
    if builder.root is None:
        report.error(Mark(), "the file is empty")
    return builder.root


def _decode(content: str | bytes, report: Report) -> str | None:
    """Return the text without a byte order mark; report what YAML cannot hold, where it stands."""
    if len(content) > MAX_BYTES:
        report.error(Mark(), f"the file is larger than {MAX_BYTES >> 10} KiB", "is it the right file?")
        return None
    if isinstance(content, str):
        text = content
    else:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            report.error(Mark(), "the file is UTF-16", "save it as UTF-8")
            return None
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            before = content[: error.start].decode("utf-8")
            report.error(
                _mark_at(before, len(before)), "not UTF-8 text from here on", "save the file as UTF-8"
            )
            return None
    text = text.removeprefix("\ufeff")
    for index, character in _unprintable(text):
        what = "a NUL byte" if character == "\0" else f"the control character U+{ord(character):04X}"
        report.error(_mark_at(text, index), f"{what} cannot stand in YAML", "delete it")
        return None
    return text


def _unprintable(text: str) -> Iterator[tuple[int, str]]:
    if text.isprintable():
        return
    for index, character in enumerate(text):
        code = ord(character)
        control = code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF)
        if (control and character not in _PRINTABLE_CONTROLS) or character == "\ufeff":
            yield index, character


def _mark_at(text: str, index: int) -> Mark:
    lines = split_lines(text[:index])
    return Mark(line=len(lines), column=len(lines[-1]) + 1)


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    mark: Mark
    mapping: bool
    anchor: str | None
    nodes: list[Node] = field(default_factory=list)  # of a mapping: key, value, key, value, …
    weight: int = 1


class _Builder:
    """Puts parser events together to nodes, counting as it goes."""

    def __init__(self, report: Report, end: Mark) -> None:
        self.root: Node | None = None
        self._end = end
        self._report = report
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._total = 0

    def take(self, event: yaml.Event) -> bool:
        """Take one event; False when the file is beyond repair (the reason is reported)."""
        start = event.start_mark
        mark = Mark(line=start.line + 1, column=start.column + 1) if start else Mark()
        mark = min(mark, self._end)  # a value that is missing at the end stands behind it for the parser
        if isinstance(event, yaml.NodeEvent):
            return self._tag_is_known(event, mark) and self._node(event, mark)
        if isinstance(event, yaml.CollectionEndEvent):
            return self._close()
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            return self._stop(mark, "a second document begins here", "one file is one document: drop the ---")
        return True

    def _node(self, event: yaml.NodeEvent, mark: Mark) -> bool:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", mark)
        if isinstance(event, yaml.ScalarEvent):
            plain = not event.style and event.tag != _CORE + "str"
            node = ScalarNode(
                mark=mark, text=event.value, raw=event.value, plain=plain, offset=_text_offset(event)
            )
            return self._add(node, 1, event.anchor)
        if len(self._open) >= MAX_DEPTH:
            return self._stop(mark, f"nested more than {MAX_DEPTH} deep")
        self._open.append(
            _Open(mark=mark, mapping=isinstance(event, yaml.MappingStartEvent), anchor=event.anchor)
        )
        return True

    def _tag_is_known(self, event: yaml.NodeEvent, mark: Mark) -> bool:
        tag = getattr(event, "tag", None)
        if tag is None or tag in _TAGS or tag == "!":
            return True
        return self._stop(
            mark, f"the tag {shorten(tag.replace(_CORE, '!!'))} is not used here", "put the text in quotes"
        )

    def _alias(self, anchor: str, mark: Mark) -> bool:
        if any(collection.anchor == anchor for collection in self._open):
            return self._stop(mark, f"*{anchor} is used inside of what it stands for")
        if anchor not in self._anchors:
            hint = f'a text that begins with * needs quotes: "*{anchor}"'
            return self._stop(mark, f"*{anchor} stands for nothing: there is no &{anchor} above", hint)
        node, weight = self._anchors[anchor]
        return self._add(node, weight, None, mark)

    def _add(self, node: Node, weight: int, anchor: str | None, mark: Mark | None = None) -> bool:
        self._total += weight
        if self._total > MAX_NODES:
            return self._stop(mark or node.mark, f"more than {MAX_NODES} values once aliases are followed")
        if anchor is not None:
            self._anchors[anchor] = (node, weight)
        if not self._open:
            self.root = node
            return True
        self._open[-1].nodes.append(node)
        self._open[-1].weight += weight
        return True

    def _close(self) -> bool:
        done = self._open.pop()
        self._total -= done.weight - 1  # `_add` counts the whole once more
        if not done.mapping:
            return self._add(ListNode(mark=done.mark, items=tuple(done.nodes)), done.weight, done.anchor)
        entries = self._entries(done.nodes)
        if entries is None:
            return False
        return self._add(MapNode(mark=done.mark, entries=entries), done.weight, done.anchor)

    def _entries(self, nodes: list[Node]) -> tuple[Entry, ...] | None:
        """Pair keys with values, lay merged mappings under them, report duplicate keys."""
        own: dict[str, Entry] = {}
        merged: list[MapNode] = []
        for key, value in zip(nodes[::2], nodes[1::2], strict=True):
            if not isinstance(key, ScalarNode):
                self._stop(key.mark, "a key must be a plain word", "a text with { } or [ ] needs quotes")
                return None
            if key.text == "<<" and key.plain:
                merged += self._merged(key, value)
            elif key.text in own:
                first = own[key.text].key.mark.line
                self._report.error(key.mark, f"{key.text!r} is here twice; the first is in line {first}")
            else:
                own[key.text] = Entry(key=key, value=value)
        for mapping in merged:
            for entry in mapping.entries:
                own.setdefault(entry.key.text, entry)
        return tuple(own.values())

    def _merged(self, key: ScalarNode, value: Node) -> list[MapNode]:
        values = value.items if isinstance(value, ListNode) else (value,)
        mappings = [node for node in values if isinstance(node, MapNode)]
        if len(mappings) < len(values):
            self._report.error(key.mark, "<< takes in a mapping, such as <<: *name")
        return mappings

    def _stop(self, mark: Mark, message: str, hint: str = "") -> bool:
        self._report.error(mark, message, hint)
        return False


def _text_offset(event: yaml.ScalarEvent) -> int | None:
    """Return how far in the text begins; None if it is folded, escaped, tagged or anchored."""
    start, end = event.start_mark, event.end_mark
    if start is None or end is None or start.line != end.line:
        return None
    around = end.column - start.column - len(event.value)
    return {0: 0, 2: 1}.get(around)
