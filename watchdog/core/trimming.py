"""Cuts a message to what its channel takes, in the channel's own unit, and says what is missing.

Owns sizes, cuts and the order in which parts of a message give way. Knows no wording: the
blocks bring their own remarks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from watchdog.core.defang import is_extender
from watchdog.core.notifications import LimitUnit

ELLIPSIS = "…"
_LONGEST_CLUSTER = 16


def size(text: str, unit: LimitUnit) -> int:
    """Return the size of a text: UTF-8 bytes, or characters as UTF-16 counts them.

    Services disagree on what a character is; UTF-16 units are the largest of the usual counts.
    """
    if unit is LimitUnit.BYTES:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int, unit: LimitUnit) -> str:
    """Return the text, or as much of its beginning as fits with an ellipsis.

    Never ends inside a code point, or between a character and its accents. `limit` may be 0.
    """
    if size(text, unit) <= limit:
        return text
    room = limit - size(ELLIPSIS, unit)
    if room < 0:
        return ""
    end = min(len(text), room)
    kept = text[:end]
    while (excess := size(kept, unit) - room) > 0:
        kept = kept[: len(kept) - max(1, excess // 4)]
    return kept[: _boundary(text, len(kept))].rstrip() + ELLIPSIS


def _boundary(text: str, end: int) -> int:
    for back in range(min(_LONGEST_CLUSTER, end)):
        index = end - back
        if not is_extender(text[index]) and text[index - 1] != "\u200d":
            return index
    return end


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some lines of a message that belong together.

    keep: the indices of its lines, most important first; the last go first. Empty = in order.
    remark: from the indices shown to a line that says what is missing ("" = nothing is).
    rank: blocks of a lower rank give way first; None = never.
    floor: how many lines stay in the first round, in which every block gives way down to that.
    """

    lines: tuple[str, ...]
    head: str = ""
    keep: tuple[int, ...] = ()
    remark: Callable[[Sequence[int]], str] | None = None
    rank: int | None = None
    floor: int = 0
    apart: bool = False  # an empty line before it


@dataclass(frozen=True, slots=True)
class _Shown:
    """A block and how many of its lines are shown; `gone`: not even the remark is."""

    block: Block
    count: int
    gone: bool = False

    def text(self) -> list[str]:
        if self.gone:
            return []
        block = self.block
        order = block.keep or tuple(range(len(block.lines)))
        indices = sorted(order[: self.count])
        lines = [block.lines[index] for index in indices]
        remark = block.remark(indices) if block.remark else ""
        if lines and block.head:
            lines.insert(0, block.head)
        return [*lines, remark] if remark else lines


def fit(blocks: Sequence[Block], limit: int, unit: LimitUnit) -> str:
    """Return the blocks as one text of at most `limit`.

    The last block is the one that must survive whole; if nothing else helps, the other lasting
    blocks are cut before it.
    """
    shown = [_Shown(block, len(block.lines)) for block in blocks]
    ranked = sorted((b.rank, i) for i, b in enumerate(blocks) if b.rank is not None)
    for floor_of in (lambda block: block.floor, lambda block: 0):
        for _, index in ranked:
            if size(_text(shown), unit) > limit:
                _shrink(shown, index, floor_of(blocks[index]), limit, unit)
    for _, index in ranked:
        if size(_text(shown), unit) <= limit:
            break
        shown[index] = replace(shown[index], gone=True)
    for _, index in reversed(ranked):
        _grow(shown, index, limit, unit)
    return _squeeze(shown, limit, unit)


def _grow(shown: list[_Shown], index: int, limit: int, unit: LimitUnit) -> None:
    """Use room that is left because another block had to give way more than was needed."""
    before = shown[index]
    for count in range(len(before.block.lines), before.count, -1):
        shown[index] = _Shown(before.block, count)
        if size(_text(shown), unit) <= limit:
            return
    shown[index] = before


def _shrink(shown: list[_Shown], index: int, floor: int, limit: int, unit: LimitUnit) -> None:
    """Show the most lines of one block that fit, but at least `floor`."""
    start = shown[index].count
    for count in range(start - 1, floor - 1, -1):
        shown[index] = replace(shown[index], count=count)
        if size(_text(shown), unit) <= limit:
            return


def _squeeze(shown: list[_Shown], limit: int, unit: LimitUnit) -> str:
    text = _text(shown)
    if size(text, unit) <= limit:
        return text
    vital = cut(_text(shown[-1:]), limit, unit)
    room = limit - size(vital, unit) - 1
    rest = cut(_text(shown[:-1]), room, unit) if room > 0 else ""
    return f"{rest}\n{vital}" if rest else vital


def _text(shown: Sequence[_Shown]) -> str:
    lines: list[str] = []
    for part in shown:
        own = part.text()
        if own and lines and part.block.apart:
            lines.append("")
        lines.extend(own)
    return "\n".join(lines)
