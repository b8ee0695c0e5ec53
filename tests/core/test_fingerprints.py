import pytest

from watchdog.core.fingerprints import line_fingerprint, shape
from watchdog.core.hygiene import clean
from watchdog.core.logs import LogLine


def of(row: str, pod: str = "pod-0") -> str:
    (line,) = clean([LogLine(1, pod, row)])
    return line_fingerprint(line)


def test_512_ranks_and_pods_with_one_error_are_one_kind() -> None:
    text = "[rank{}]: RuntimeError: [../gloo/pair.cc:534] Connection closed by peer [10.0.{}.4]:{}"
    kinds = {of(text.format(rank, rank % 7, 33_000 + rank), f"train-{rank // 8}") for rank in range(512)}

    assert len(kinds) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tried to allocate 2.00 GiB. GPU 0 has 79.15 GiB", "Tried to allocate 20.00 MiB. GPU 7 has 79 GiB"),
        ("OSError: disk full: '/ckpt/step_1000/a'", "OSError: disk full: '/mnt/other/b.pt'"),
        ("lost 550e8400-e29b-41d4-a716-446655440000", "lost 123e4567-e89b-12d3-a456-426614174000"),
        ("2024-01-01 12:00:00,123 ERROR boom", "2025-11-30T04:11:25.5Z ERROR boom"),
        ("object at 0x7f3a11 died", "object at 0xdeadbeef12 died"),
        ("peer fe80::1%eth0 gone at 0a:1b:2c:3d:4e:5f", "peer fe80::2%eth0 gone at 0a:1b:2c:3d:4e:60"),
        (
            "10%|█▏        | 10/100 [00:01<00:10, 1.5s/it] ERROR",
            "99%|█████████▏| 99/100 [01:01<00:10, 9.5it/s] ERROR",
        ),
        ("3: KeyError: 'x'", "[rank11]: KeyError: 'x'"),
        ("took 5 ms", "took 7 s"),
        ("a    b", "a b"),
    ],
)
def test_lines_that_differ_in_particulars_are_alike(one: str, other: str) -> None:
    assert of(one) == of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 'a'", "KeyError: 'b'"),
        ("OSError: [Errno 28] failed", "OSError: [Errno 122] failed"),
        ("NVRM: Xid (PCI:0000:9b:00): 79, pid=1", "NVRM: Xid (PCI:0000:9b:00): 48, pid=1"),
        ("exited with code 137", "exited with code 1"),
        ("got signal: 15", "got signal: 9"),
        ("错误：显存不足", "错误：磁盘已满"),
    ],
)
def test_what_names_the_cause_keeps_lines_apart(one: str, other: str) -> None:
    assert of(one) != of(other)


def test_the_pod_s_own_name_is_no_difference_even_without_digits() -> None:
    assert of("worker-abcde died", "worker-abcde") == of("worker-fghij died", "worker-fghij")


def test_a_code_keeps_xids_of_different_gpus_together() -> None:
    assert of("NVRM: Xid (PCI:0000:9b:00): 79, pid=1") == of("NVRM: Xid (PCI:0000:38:00): 79, pid=22")


def test_a_shape_is_readable_and_short() -> None:
    assert shape("step 5 of 70000 at /a/b/c failed") == "step # of # at <path> failed"
    assert len(shape("word " * 5_000)) <= 400


@pytest.mark.parametrize(
    "piece", ["a", "/", "/a", "-", "#", "# ", "[errno ", "xid ", "1", "http ", "exit code", "█"]
)
def test_hostile_lines_are_cheap(piece: str) -> None:
    assert len(shape(piece * 100_000)) <= 400
