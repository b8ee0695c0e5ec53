"""Labels: the immutable name-value pairs that identify series, alerts and incidents.

Owns ordering, hashing, matching and fingerprints. Knows nothing of where labels come from.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Self, TypeVar, overload

T = TypeVar("T")

SOURCE = "source"
TASK = "task"
TASK_NAME = "task_name"
POD = "pod"
GPU = "gpu"
NODE = "node"
OF_TASK = frozenset({SOURCE, TASK, TASK_NAME})


class Labels(Mapping[str, str]):
    """An immutable, hashable, ordered mapping of label names to values.

    A label with an empty value is the same as a missing label and is dropped (as in Prometheus).
    code: 64 bits that equal labels share in this process, and different ones practically never do (it is
    made by the interpreter's keyed hash).
    """

    __slots__ = ("code", "pairs")

    pairs: tuple[tuple[str, str], ...]
    code: int

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        items = values.items() if isinstance(values, Mapping) else values
        self.pairs = tuple(sorted((name, value) for name, value in items if value))
        self.code = hash(self.pairs)

    @classmethod
    def of(cls, **values: str) -> Self:
        """Build labels from keyword arguments."""
        return cls(values)

    def __getitem__(self, name: str) -> str:
        for key, value in self.pairs:
            if key == name:
                return value
        raise KeyError(name)

    # The mixin's `get` and `in` go through `__getitem__` and its KeyError; these are on every slot's way.
    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str, /) -> str: ...
    @overload
    def get(self, name: str, default: str | T, /) -> str | T: ...
    def get(self, name: str, default: object = None, /) -> object:
        """Return a label's value, or the default."""
        for key, value in self.pairs:
            if key == name:
                return value
        return default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __hash__(self) -> int:
        return self.code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self.pairs == other.pairs

    def __lt__(self, other: "Labels") -> bool:
        return self.pairs < other.pairs

    def __repr__(self) -> str:
        return "{" + ", ".join(f'{name}="{value}"' for name, value in self.pairs) + "}"

    def only(self, names: Iterable[str]) -> "Labels":
        """Return the labels whose name is in `names`."""
        wanted = tuple(names)
        kept = tuple([pair for pair in self.pairs if pair[0] in wanted])
        return self if len(kept) == len(self.pairs) else Labels._sorted(kept)

    @classmethod
    def _sorted(cls, pairs: tuple[tuple[str, str], ...]) -> "Labels":
        """Build labels from pairs that are in order and have no empty value."""
        made = cls.__new__(cls)
        made.pairs, made.code = pairs, hash(pairs)
        return made

    def plus(self, other: Mapping[str, str]) -> "Labels":
        """Return these labels with `other` laid over them."""
        return Labels({**dict(self.pairs), **other})


class Interned:
    """Equal labels as one object, and equal pairs of name and value as one.

    A hundred thousand GPUs have a hundred thousand labelsets, but only some thousand pairs.
    """

    def __init__(self) -> None:
        self._labels: dict[int, Labels] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}

    def of(self, labels: Labels) -> Labels:
        """Return the object that stands for these labels."""
        known = self._labels.get(labels.code)
        if known is None:
            shared = self._pairs.setdefault
            known = self._labels[labels.code] = Labels._sorted(
                tuple([shared(one, one) for one in labels.pairs])
            )
        return known

    def keep(self, labels: Iterable[Labels]) -> None:
        """Forget all others."""
        self._labels, self._pairs = {}, {}
        for one in labels:
            self._labels[one.code] = one
            self._pairs.update((pair, pair) for pair in one.pairs)


def within_task(labels: Labels) -> Labels:
    """Return what tells a series from the others of its task: pod, card, error code, …"""
    return Labels((name, value) for name, value in labels.pairs if name not in OF_TASK)


def fingerprint(*parts: str) -> str:
    """Return a stable 16-digit hex id of the given texts (BLAKE2b, 8 bytes)."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\x00")
    return digest.hexdigest()


def labels_id(labels: Labels) -> str:
    """Return a stable hex id of a labelset."""
    return fingerprint(*(text for pair in labels.pairs for text in pair))
