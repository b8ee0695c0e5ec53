"""Seen lines: which log lines of a stream were already consumed, and how often.

An immutable mapping in buckets of about a second, so that a page copies little and pruning drops
whole buckets. Knows hashes and times only, never texts.
"""

import hashlib
from collections.abc import ItemsView, Iterator, Mapping
from typing import Self

from watchdog.core.logs import LogLine

_BUCKET_BITS = 30  # 2^30 ns = 1.07 s

Entry = tuple[int, int]  # time in ns, count


def line_hash(line: LogLine) -> int:
    """Return the identity of a row: 63 bits of BLAKE2b over pod, time and text."""
    digest = hashlib.blake2b(
        f"{line.pod}\x00{line.time_ns}\x00".encode("utf-8", "surrogatepass"), digest_size=8
    )
    digest.update(line.text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big") >> 1  # fits a signed 64-bit column


class SeenLines(Mapping[int, Entry]):
    """hash → (time in ns, count); equal to a plain dict with the same items."""

    __slots__ = ("_buckets", "_size")

    def __init__(self, buckets: dict[int, dict[int, Entry]]) -> None:
        self._buckets = buckets
        self._size = sum(map(len, buckets.values()))

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

    def count(self, key: int, time_ns: int) -> int:
        """How many lines with this hash, which holds the time, were consumed."""
        bucket = self._buckets.get(time_ns >> _BUCKET_BITS, {})
        return bucket[key][1] if key in bucket else 0

    def raised(self, counts: Mapping[int, Entry]) -> "SeenLines":
        """Return this with each entry of `counts` raised to at least its count."""
        buckets = dict(self._buckets)
        copied: set[int] = set()
        for key, (time_ns, count) in counts.items():
            number = time_ns >> _BUCKET_BITS
            if number not in copied:
                copied.add(number)
                buckets[number] = dict(buckets.get(number, {}))
            bucket = buckets[number]
            if key not in bucket or bucket[key][1] < count:
                bucket[key] = (time_ns, count)
        return SeenLines(buckets)

    def since(self, horizon_ns: int) -> "SeenLines":
        """Return only the lines at or after a time."""
        edge = horizon_ns >> _BUCKET_BITS
        buckets = {number: bucket for number, bucket in self._buckets.items() if number > edge}
        kept = {key: entry for key, entry in self._buckets.get(edge, {}).items() if entry[0] >= horizon_ns}
        if kept:
            buckets[edge] = kept
        return SeenLines(buckets)

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
