"""Thresholds and clear levels: which side, which unit, and whether they can ever be reached."""

from watchdog.config import schema_conditions as inner
from watchdog.config import schema_rules as keys
from watchdog.config.kinds import Level
from watchdog.config.report import Report
from watchdog.config.tables import Fields, Key
from watchdog.core.conditions.kinds import Comparison

_MANY_TIMES = 10  # a bare `above: 150` of a peer rule means 150 %


def above_or_below(fields: Fields, above: Key[object], below: Key[object], report: Report) -> bool | None:
    """Return whether `above` is the one that is there; None after reporting that not exactly one is."""
    if fields.has(above) == fields.has(below):
        both = fields.has(above)
        message = "above and below exclude each other" if both else "needs above: or below:"
        report.error(fields.key_at(below) if both else fields.mark, message)
        return None
    return fields.has(above)


def comparison(fields: Fields, *, ratio: bool, spread: bool, report: Report) -> Comparison | None:
    """Return the comparison of a metric rule.

    ratio: the metric is one (1 = 100 %). spread: the value compared is a slope or a deviation of it.
    """
    above = above_or_below(fields, keys.ABOVE, keys.BELOW, report)
    if above is None:
        return None
    key = keys.ABOVE if above else keys.BELOW
    clear_key, wrong = keys.CLEAR_BELOW, keys.CLEAR_ABOVE
    if not above:
        clear_key, wrong = wrong, clear_key
    if fields.has(wrong):
        hint = f"{key.name}: is cleared by {clear_key.name}:"
        report.error(fields.key_at(wrong), f"{wrong.name} does not go with {key.name}", hint)
    threshold = _in_unit(fields.get(key), key.name, ratio, report)
    clear = _in_unit(fields.get(clear_key), clear_key.name, ratio, report)
    if threshold is None:
        return None
    if clear is not None and (clear > threshold if above else clear < threshold):
        shown = _shown(fields.get(key))
        side = "above" if above else "below"
        hint = f"it must not be {side} {shown}, or nothing would ever be between"
        report.error(fields.at(clear_key), f"{clear_key.name} is on the wrong side of the threshold", hint)
    if ratio and not spread:
        _reachable(threshold, above, fields, key, report)
    return Comparison(above=above, threshold=threshold, clear=clear)


def share_comparison(share: Fields, *, ratio: bool, report: Report) -> Comparison | None:
    """Return the comparison of each point of a share rule."""
    above = above_or_below(share, inner.SHARE_ABOVE, inner.SHARE_BELOW, report)
    if above is None:
        return None
    key = inner.SHARE_ABOVE if above else inner.SHARE_BELOW
    threshold = _in_unit(share.get(key), key.name, ratio, report)
    if threshold is None:
        return None
    if ratio:
        _reachable(threshold, above, share, key, report)
    return Comparison(above=above, threshold=threshold)


def peer_ratio(peers: Fields, *, above: bool, report: Report) -> float | None:
    """Return the part of the middle that a member is compared with."""
    key = inner.PEERS_ABOVE if above else inner.PEERS_BELOW
    found = peers.get(key)
    if found is None:
        return None
    shown = found.node.shown
    bare_percent = not found.percent and found.value >= (_MANY_TIMES if above else 1)
    hint = f"did you mean {shown}%?" if bare_percent else ""
    if bare_percent:
        report.error(found.node.mark, f"{key.name}: {shown} is {shown} times the middle of the peers", hint)
    elif above and found.value <= 1:
        report.error(found.node.mark, "above: must be more than 100% of the middle", "150% is half more")
    elif not above and not 0 < found.value < 1:
        report.error(found.node.mark, "below: must be less than 100% of the middle", "50% is half")
    else:
        return found.value
    return None


def _in_unit(level: Level | None, name: str, ratio: bool, report: Report) -> float | None:
    """Return the number in the metric's own unit, or None after reporting that it is in another."""
    if level is None:
        return None
    shown = level.node.shown
    if ratio and not level.percent and abs(level.value) > 1:
        message = f"{name}: {shown}: this metric is a ratio, 1 is 100%"
        report.error(level.node.mark, message, f"did you mean {shown}%?")
        return None
    if level.percent and not ratio:
        message = f"{name}: {shown}: this metric is no ratio, so there is no percentage of it"
        report.error(level.node.mark, message, "write a number in the metric's own unit")
        return None
    return level.value


def _reachable(threshold: float, above: bool, fields: Fields, key: Key[Level], report: Report) -> None:
    shown = _shown(fields.get(key))
    if above and threshold >= 1:
        report.warning(fields.at(key), f"{key.name}: a ratio is hardly ever above {shown}: it may never fire")
    elif not above and threshold <= 0:
        report.warning(fields.at(key), f"{key.name}: a ratio is never below {shown}: it can never fire")
    elif threshold < 0 or threshold > 1:
        report.warning(fields.at(key), f"{key.name}: a ratio is always {key.name} {shown}: it fires at once")


def _shown(level: Level | None) -> str:
    return "" if level is None else level.node.shown
