"""Finds the word somebody probably meant. Knows nothing of what the words are for."""

from collections.abc import Iterable

_CLOSE = 0.6
_MAX_LENGTH = 80  # comparing is quadratic


def near(word: str, known: Iterable[str], *, cutoff: float = _CLOSE) -> str:
    """Return the known word most like `word` (case and - _ aside), or "" if none is as alike as `cutoff`."""
    if not word or len(word) > _MAX_LENGTH:
        return ""
    by_shape = {_shape(candidate): candidate for candidate in known if len(candidate) <= _MAX_LENGTH}
    shape = _shape(word)
    if shape in by_shape:
        return by_shape[shape]
    from difflib import get_close_matches  # here: a daemon whose words are right never needs it

    close = get_close_matches(shape, by_shape, n=1, cutoff=cutoff)
    return by_shape[close[0]] if close else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the near word, or else all of them if they are few."""
    names = list(known)
    similar = near(word, names)
    if similar:
        return f"did you mean {similar}?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= 24 else ""


def _shape(word: str) -> str:
    return word.lower().replace("-", "_")
