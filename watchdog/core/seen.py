"""Seen lines: which log lines of a stream were already consumed, and how often.

An immutable mapping in buckets of about a second, so that a page copies little and pruning drops
whole buckets. Knows hashes and times only, never texts.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Self

import numpy as np
from numpy.typing import NDArray

from watchdog.core.logs import LogLine

_BUCKET_BITS = 30  # 2^30 ns = 1.07 s

# A row's hash is the polynomial of its bytes at _BASE, modulo 2^64, shuffled: in one pass over a whole page
# it costs a tenth of a digest per row. It is stored: with other numbers here, what was consumed before an
# update of the program would be read as new once more.
_BASE = 0x9E3779B97F4A7C15
_TIME = 0xD1342543DE82EF95
_SHUFFLES = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # SplitMix64's
_PIECE = 1 << 16  # bytes in one pass; what fits the processor's cache
_LONG = 4096  # characters; a longer row is stood for by its digest

Entry = tuple[int, int]  # time in ns, count


def line_hash(line: LogLine) -> int:
    """Return the identity of a row, of its pod, time and text: a number below 2^63."""
    return line_hashes((line,))[0]


def line_hashes(lines: Sequence[LogLine]) -> list[int]:
    """Return the identity of each row; the same for the same row, today and after a restart."""
    if not lines:
        return []
    times, pods, texts = zip(*lines, strict=True)
    numbers = {pod: number for number, pod in enumerate(dict.fromkeys(pods))}
    of_pod = _polynomials(tuple(numbers)) * np.uint64(_BASE)
    found = np.fromiter(times, np.int64, len(times)).view(np.uint64) * np.uint64(_TIME)
    found += _polynomials(texts)
    found += of_pod[np.fromiter(map(numbers.__getitem__, pods), np.intp, len(pods))]
    for shift, factor in _SHUFFLES:
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    hashes: list[int] = (found >> np.uint64(1)).tolist()  # fits a signed 64-bit column
    return hashes


def _polynomials(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return the sum of byte times _BASE to the power of its place, of each text and a line break."""
    if max(map(len, texts)) > _LONG:
        texts = [text if len(text) <= _LONG else _digest(text) for text in texts]
    whole = "\n".join((*texts, ""))
    data = np.frombuffer(_encoded(whole), np.uint8)
    lengths = texts if len(data) == len(whole) else [_encoded(text) for text in texts]
    ends = np.cumsum(np.fromiter(map(len, lengths), np.int64, len(texts)) + 1)
    begins = np.concatenate(([0], ends[:-1]))
    powers, inverses = _powers()
    sums = []
    first = 0
    while first < len(texts):
        offset = begins[first]
        last = int(np.searchsorted(ends, offset + _PIECE, side="right"))
        piece = data[offset : ends[last - 1]]
        starts = begins[first:last] - offset
        sums.append(np.add.reduceat(piece * powers[: len(piece)], starts) * inverses[starts])
        first = last
    return np.concatenate(sums)


@cache
def _powers() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the powers of _BASE and of its inverse: a sum's places count from where its text begins."""
    both = []
    for base in (_BASE, pow(_BASE, -1, 1 << 64)):
        powers = np.full(_PIECE, base, np.uint64)
        powers[0] = 1
        both.append(np.cumprod(powers, dtype=np.uint64))
    return both[0], both[1]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(text: str) -> str:
    return hashlib.blake2b(_encoded(text), digest_size=16).hexdigest()


class SeenLines(Mapping[int, Entry]):
    """hash → (time in ns, count); equal to a plain dict with the same items."""

    __slots__ = ("_buckets", "_size")

    def __init__(self, buckets: dict[int, dict[int, Entry]], size: int | None = None) -> None:
        self._buckets = buckets
        self._size = sum(map(len, buckets.values())) if size is None else size

    @classmethod
    def of(cls, entries: Mapping[int, Entry]) -> Self:
        """Return `entries` as such a mapping; itself if it is one."""
        if isinstance(entries, cls):
            return entries
        buckets: dict[int, dict[int, Entry]] = {}
        for key, entry in entries.items():
            buckets.setdefault(entry[0] >> _BUCKET_BITS, {})[key] = entry
        return cls(buckets)

    def __getitem__(self, key: int) -> Entry:
        for bucket in self._buckets.values():
            if key in bucket:
                return bucket[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[int]:
        for bucket in self._buckets.values():
            yield from bucket

    def __len__(self) -> int:
        return self._size

    def items(self) -> ItemsView[int, Entry]:
        """All entries, in one pass over the buckets."""
        return {key: entry for bucket in self._buckets.values() for key, entry in bucket.items()}.items()

    def with_page(self, keys: Sequence[int], times: Sequence[int]) -> tuple["SeenLines", list[int]]:
        """Return this with the rows of one page, and which of them, by position, were not in it.

        keys, times: each row's hash and time, in order of time. Of like rows as many count as known as
        were there; a row shown again raises no count.
        """
        buckets = dict(self._buckets)
        size = self._size
        fresh: list[int] = []
        first = 0
        while first < len(keys):
            number = times[first] >> _BUCKET_BITS
            last = bisect_left(times, (number + 1) << _BUCKET_BITS, first)
            before = buckets.get(number, {})
            shown = dict(zip(keys[first:last], zip(times[first:last], repeat(1)), strict=True))
            if len(shown) == last - first and before.keys().isdisjoint(shown):  # as nearly always
                buckets[number] = before | shown
                fresh += range(first, last)
            elif beyond := _beyond(before, keys[first:last]):
                buckets[number] = _raised(before, shown, keys[first:last])
                fresh += [first + n for n in beyond]
            size += len(buckets.get(number, ())) - len(before)
            first = last
        return SeenLines(buckets, size), fresh

    def since(self, horizon_ns: int) -> "SeenLines":
        """Return only the lines at or after a time, and those of the same second."""
        edge = horizon_ns >> _BUCKET_BITS
        if min(self._buckets, default=edge) >= edge:
            return self
        return SeenLines({number: bucket for number, bucket in self._buckets.items() if number >= edge})

    def capped(self, limit: int) -> tuple["SeenLines", int]:
        """Return at most about `limit` lines, oldest out, and the first time that is still whole.

        The time is 0 if nothing had to go. The newest bucket always stays.
        """
        if self._size <= limit:
            return self, 0
        buckets = dict(self._buckets)
        size = self._size
        for number in sorted(buckets)[:-1]:
            size -= len(buckets.pop(number))
            if size <= limit:
                break
        return SeenLines(buckets), min(buckets) << _BUCKET_BITS


def _beyond(before: Mapping[int, Entry], keys: Sequence[int]) -> Sequence[int]:
    """Return the positions of the rows that are more than `before` has of their kind."""
    shown: Counter[int] = Counter()
    found = []
    for n, key in enumerate(keys):
        shown[key] += 1
        if key not in before or shown[key] > before[key][1]:
            found.append(n)
    return found


def _raised(before: Mapping[int, Entry], shown: Mapping[int, Entry], keys: Sequence[int]) -> dict[int, Entry]:
    """Return a bucket in which each row counts at least as often as the page shows it."""
    after = dict(before)
    for key, count in Counter(keys).items():
        if key not in before or count > before[key][1]:
            after[key] = (shown[key][0], count)
    return after
