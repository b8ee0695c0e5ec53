"""How a scenario's result looks: what was expected beside what came, and what the engine logged meanwhile.

Owns the layout only; which message answers which expectation is `replay.timeline`'s.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from watchdog.cli.output import Output, Style, cut, display_width, safe
from watchdog.replay.overhearing import Remark
from watchdog.replay.timeline import Row, offset_text

if TYPE_CHECKING:
    from watchdog.replay.files import Played
    from watchdog.replay.world import Sent

WRONG, FINE, LOGGED = "✗", "=", "!"
NEAR = 2  # rows that are as expected and are shown, before and after one that is not
UNSEEN = "\u200b"  # keeps chat rooms from taking a text for a mention; no person sees it
HEAD = ("LINE", "EXPECTED", "SENT")


def show_timeline(played: "Played", output: Output) -> None:
    """Show both timelines side by side; below each row that is not as expected, in what it differs."""
    rows = played.verdict.rows
    lines = [str(row.line) if row.line else "" for row in rows]
    wide = max(map(len, (HEAD[0], *lines)))
    left = max(display_width(text) for text in (HEAD[1], *(safe(row.expected) for row in rows)))
    output.line()
    output.line(output.styled(f"    {HEAD[0]:>{wide}}  {_padded(HEAD[1], left)}  {HEAD[2]}", Style.BOLD))
    for part in _abridged(rows, played.remarks):
        if isinstance(part, str):
            output.line(output.styled(f"    {'':>{wide}}  {part}", Style.DIM))
        elif not isinstance(part, Row):
            _remark(part, output)
        else:
            _row(part, wide, left, output)
    output.line()
    for sentence in played.verdict.broken:
        _below(f"  {WRONG} ", sentence, output)
    if played.verdict.broken:
        output.line()


def _row(row: Row, wide: int, left: int, output: Output) -> None:
    number = str(row.line) if row.line else ""
    text = f"{number:>{wide}}  {_padded(safe(row.expected), left)}  {safe(row.came_shortly)}".rstrip()
    mark = output.styled(WRONG, Style.RED) if row.differences else FINE
    output.line(f"  {mark} {cut(text, output.width - 4) if output.terminal else text}")
    title = f": {row.sent.title}" if row.sent is not None and row.wanted is None else ""
    for difference in row.differences:
        _below(" " * (wide + 6), difference + title, output)


def _remark(remark: Remark, output: Output) -> None:
    _below(f"  {LOGGED} ", _said(remark), output, Style.DIM)


def _said(remark: Remark) -> str:
    times = f" (×{remark.times})" if remark.times > 1 else ""
    return f"{offset_text(remark.at)} logged as {remark.level}: {remark.text}{times}"


def _below(head: str, text: str, output: Output, style: Style | None = None) -> None:
    """Write a text after a head, on a terminal in as many lines as it takes, one below the other."""
    text = safe(text)
    parts = wrap(text, max(output.width - len(head), 20)) if output.terminal else [text]
    for number, part in enumerate(parts):
        line = (" " * len(head) if number else head) + part
        output.line(output.styled(line, style) if style else line)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _abridged(rows: Sequence[Row], remarks: Sequence[Remark]) -> Iterator[Row | Remark | str]:
    """Rows and remarks in order of time, without the long stretches in which all is as expected."""
    near = {
        place
        for number, row in enumerate(rows)
        if row.differences
        for place in range(number - NEAR, number + NEAR + 1)
    }
    waiting = list(remarks)
    skipped = 0
    for number, row in enumerate(rows):
        while waiting and waiting[0].at <= row.at:
            if skipped:
                yield _left_out(skipped)
            skipped = 0
            yield waiting.pop(0)
        if number not in near:
            skipped += 1
            continue
        if skipped:
            yield _left_out(skipped)
        skipped = 0
        yield row
    if skipped:
        yield _left_out(skipped)
    yield from waiting


def _left_out(count: int) -> str:
    return f"… {count} as expected"


def show_messages(played: "Played", output: Output) -> None:
    """Show every message in full, and what the engine logged, in order of time."""
    output.line()
    told: list[Sent | Remark] = [*played.sent, *played.remarks]
    story = sorted(told, key=lambda part: part.at)
    for part in story:
        if isinstance(part, Remark):
            _remark(part, output)
            output.line()
            continue
        head = f"{offset_text(part.at)} {part.channel} {part.kind}: "
        output.line(safe(head) + output.styled(safe(part.title), Style.BOLD))
        for line in part.body.replace(UNSEEN, "").splitlines():
            output.line(f"  {safe(line)}".rstrip())
        output.line()
