from watchdog.core.hygiene import CleanLine, clean
from watchdog.core.logs import LogLine
from watchdog.core.tracebacks import Joined, join

SECOND = 1_000_000_000
TRACE = [
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 88, in <module>',
    "    main()",
    "    ^^^^^^",
    '  File "/app/train.py", line 42, in main',
    "    step(batch)",
    "ValueError: bad batch {}",
]


def lines(rows: list[str] | list[tuple[str, str]], start: int = 1) -> tuple[CleanLine, ...]:
    pairs = [row if isinstance(row, tuple) else ("pod-0", row) for row in rows]
    return clean(LogLine((start + n) * SECOND, pod, text) for n, (pod, text) in enumerate(pairs))


def finals(rows: list[str] | list[tuple[str, str]]) -> list[str | None]:
    given = lines(rows)
    return [None if b.final is None else given[b.final].body for b in join(given).blocks]


def test_a_traceback_is_one_block_ending_in_its_exception_line() -> None:
    given = lines(["step 1", *TRACE, "step 2"])

    (block,) = join(given).blocks

    assert block.lines == tuple(range(1, 8))
    assert block.final == 7
    assert not block.open


def test_two_ranks_interleaved_in_one_pod_are_two_blocks_with_their_own_exceptions() -> None:
    rows = [f"[rank{rank}]: {text.format(rank)}" for text in TRACE for rank in (0, 1)]

    assert finals(rows) == ["ValueError: bad batch 0", "ValueError: bad batch 1"]


def test_two_pods_interleaved_are_two_blocks() -> None:
    rows = [(f"pod-{pod}", text.format(pod)) for text in TRACE for pod in (0, 1)]

    assert finals(rows) == ["ValueError: bad batch 0", "ValueError: bad batch 1"]


def test_ranks_interleaved_without_any_prefix_share_a_block_with_both_exceptions() -> None:
    rows = [text.format(rank) for text in TRACE for rank in (0, 1)]
    given = lines(rows)

    (block,) = join(given).blocks

    assert [given[n].text for n in block.finals] == ["ValueError: bad batch 0", "ValueError: bad batch 1"]
    assert len(block.lines) == 14


def test_other_lines_between_do_not_end_a_block() -> None:
    rows = [row for text in TRACE for row in (text, "INFO: step 5 done", "12%|#  | 1/9")]

    assert finals(rows) == ["ValueError: bad batch {}"]


def test_chained_exceptions_are_one_block_and_the_last_counts() -> None:
    for word in (
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ):
        rows = [*TRACE, "", word, "", *TRACE[:-1], "torch.OutOfMemoryError: CUDA out of memory."]

        assert finals(rows) == ["torch.OutOfMemoryError: CUDA out of memory."]


def test_two_tracebacks_one_after_the_other_are_two_blocks() -> None:
    assert finals([*TRACE, *TRACE[:-1], "KeyError: 'x'"]) == ["ValueError: bad batch {}", "KeyError: 'x'"]


def test_exceptions_of_every_naming_are_found() -> None:
    for name in (
        "KeyboardInterrupt",
        "SystemExit: 1",
        "AssertionError",
        "Exception: Current loss scale already at minimum",
        "botocore.errorfactory.NoSuchKey: gone",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "subprocess.CalledProcessError: Command '['x']' returned non-zero exit status 1.",
        "MyStrangeProblem: oh",
    ):
        assert finals([*TRACE[:-1], name]) == [name.rstrip()]


def test_a_log_line_right_behind_a_frame_is_no_exception() -> None:
    assert finals([*TRACE[:-1], "INFO: hello", "ERROR boom", "12: x", "KeyError: 'a'"]) == ["KeyError: 'a'"]


def test_an_exception_group_is_one_block() -> None:
    rows = [
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "/app/a.py", line 1, in <module>',
        "  |     run()",
        "  | ExceptionGroup: two (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        "    | Traceback (most recent call last):",
        '    |   File "/app/a.py", line 9, in run',
        "    | ValueError: one",
        "    +------------------------------------",
        "after",
    ]

    assert finals(rows) == ["    | ValueError: one"]


def test_an_exception_line_without_a_traceback_is_no_block() -> None:
    assert join(lines(["ValueError: x", "    indented", "step 1"])) == Joined(blocks=(), open={})


def test_a_block_goes_on_in_the_next_call() -> None:
    first = join(lines(TRACE[:3]))
    second = join(lines([*TRACE[3:], "step 2"], start=60), first.open)

    assert [(b.final, b.open, b.carried) for b in first.blocks] == [(None, True, False)]
    assert [(b.final, b.open, b.carried) for b in second.blocks] == [(3, False, True)]
    assert second.open == {}


def test_an_open_block_waits_through_a_call_without_its_lines() -> None:
    first = join(lines(TRACE[:3]))
    between = join(lines([("pod-1", "step 1")], start=30), first.open)
    last = join(lines(TRACE[3:], start=60), between.open)

    assert between.blocks == ()
    assert last.blocks[0].final == 3


def test_an_open_block_is_given_up_after_some_minutes_or_many_other_lines() -> None:
    opened = join(lines(TRACE[:3]))

    assert join(lines(["step"], start=600), opened.open).open == {}
    assert join(lines(["step"] * 100, start=4), opened.open).open == {}


def test_what_stays_open_is_bounded() -> None:
    rows = [(f"pod-{n}", TRACE[0]) for n in range(5_000)]
    given = clean(LogLine(SECOND + n, pod, text) for n, (pod, text) in enumerate(rows))

    assert len(join(given).open) == 4_096


def test_a_block_is_no_longer_than_some_hundred_lines() -> None:
    given = lines([TRACE[0], *["    frame"] * 2_000])

    assert max(len(block.lines) for block in join(given).blocks) <= 500
