"""Seen lines: which log lines of a stream were already consumed, and how often.

An immutable mapping in buckets of about a second, so that a page copies little and pruning drops
whole buckets. Knows hashes and times only, never texts.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from watchdog.core.logs import LogLine, LogRows

_BUCKET_BITS = 30  # 2^30 ns = 1.07 s

# A row's hash is the polynomial of its bytes at _BASE, modulo 2^64, shuffled: in one pass over a whole page
# it costs a tenth of a digest per row. It is stored: with other numbers here, what was consumed before an
# update of the program would be read as new once more.
_BASE = 0x9E3779B97F4A7C15
_TIME = 0xD1342543DE82EF95
_SHUFFLES = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # SplitMix64's
_PIECE = 1 << 15  # bytes in one pass: small enough for the processor's cache and for memory used again
_LONG = 1024  # characters; a longer row is stood for by its digest

Entry = tuple[int, int]  # time in ns, count


def line_hashes(lines: Sequence[LogLine]) -> list[int]:
    """Return the identity of each row, of its pod, time and text: numbers below 2^63.

    The same for the same row, today and after a restart.
    """
    rows = LogRows.of(lines)
    times, pods, texts = rows.times, rows.pods, rows.texts
    if not times:
        return []
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
    """hash → (time in ns, count); equal to a plain dict with the same items.

    Kept as hash → time, and apart from it the counts of those that came more than once: numbers alone, for
    the garbage collector would walk through every pair.
    """

    __slots__ = ("_buckets", "_more", "_size")

    def __init__(self, buckets: dict[int, dict[int, int]], more: dict[int, int], size: int) -> None:
        self._buckets = buckets
        self._more = more
        self._size = size

    @classmethod
    def of(cls, entries: Mapping[int, Entry]) -> Self:
        """Return `entries` as such a mapping; itself if it is one."""
        if isinstance(entries, cls):
            return entries
        buckets: dict[int, dict[int, int]] = {}
        for key, (time_ns, _) in entries.items():
            buckets.setdefault(time_ns >> _BUCKET_BITS, {})[key] = time_ns
        more = {key: count for key, (_, count) in entries.items() if count > 1}
        return cls(buckets, more, len(entries))

    def __getitem__(self, key: int) -> Entry:
        for bucket in self._buckets.values():
            if key in bucket:
                return bucket[key], self._more.get(key, 1)
        raise KeyError(key)

    def __iter__(self) -> Iterator[int]:
        for bucket in self._buckets.values():
            yield from bucket

    def __len__(self) -> int:
        return self._size

    def items(self) -> ItemsView[int, Entry]:
        """All entries, in one pass over the buckets."""
        more = self._more
        return {
            key: (time_ns, more.get(key, 1))
            for bucket in self._buckets.values()
            for key, time_ns in bucket.items()
        }.items()

    def with_page(self, keys: Sequence[int], times: Sequence[int]) -> tuple["SeenLines", list[int]]:
        """Return this with the rows of one page, and which of them, by position, were not in it.

        keys, times: each row's hash and time, in order of time. Of like rows as many count as known as
        were there; a row shown again raises no count.
        """
        buckets, more, size = dict(self._buckets), self._more, self._size
        fresh: list[int] = []
        first = 0
        while first < len(keys):
            number = times[first] >> _BUCKET_BITS
            last = bisect_left(times, (number + 1) << _BUCKET_BITS, first)
            part = keys[first:last]
            before = buckets.get(number, {})
            shown = dict(zip(part, times[first:last], strict=True))
            if len(shown) < len(part):
                fresh += [first + n for n in _beyond(before, more, part)]
                more = _raised(more, part)
            elif before.keys().isdisjoint(shown):  # as nearly always
                fresh += range(first, last)
            else:
                fresh += [first + n for n, key in enumerate(part) if key not in before]
            if not shown.keys() <= before.keys():
                buckets[number] = before | shown
                size += len(buckets[number]) - len(before)
            first = last
        return SeenLines(buckets, more, size), fresh

    def since(self, horizon_ns: int) -> "SeenLines":
        """Return only the lines at or after a time, and those of the same second."""
        edge = horizon_ns >> _BUCKET_BITS
        if min(self._buckets, default=edge) >= edge:
            return self
        return self._without([number for number in self._buckets if number < edge])

    def capped(self, limit: int) -> tuple["SeenLines", int]:
        """Return at most about `limit` lines, oldest out, and the first time that is still whole.

        The time is 0 if nothing had to go. The newest bucket always stays.
        """
        if self._size <= limit:
            return self, 0
        gone = []
        size = self._size
        for number in sorted(self._buckets)[:-1]:
            gone.append(number)
            size -= len(self._buckets[number])
            if size <= limit:
                break
        kept = self._without(gone)
        return kept, min(kept._buckets) << _BUCKET_BITS

    def _without(self, numbers: Sequence[int]) -> "SeenLines":
        buckets, more, size = dict(self._buckets), self._more, self._size
        for number in numbers:
            bucket = buckets.pop(number)
            size -= len(bucket)
            if not more.keys().isdisjoint(bucket):
                more = {key: count for key, count in more.items() if key not in bucket}
        return SeenLines(buckets, more, size)


def _beyond(before: Mapping[int, int], more: Mapping[int, int], keys: Sequence[int]) -> list[int]:
    """Return the positions of the rows that are more than were known of their kind."""
    shown: Counter[int] = Counter()
    found = []
    for n, key in enumerate(keys):
        shown[key] += 1
        if key not in before or shown[key] > more.get(key, 1):
            found.append(n)
    return found


def _raised(more: Mapping[int, int], keys: Sequence[int]) -> dict[int, int]:
    """Return the counts above one, where each row counts at least as often as the page shows it."""
    shown = {key: count for key, count in Counter(keys).items() if count > more.get(key, 1)}
    return {**more, **shown}
