"""From the keys of a rule to its condition: what it looks for.

Checks what the tables cannot: keys that exclude or need each other, units, sides, patterns. Knows no common
key of rules (`build_rules`) and no file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from watchdog.config import schema_conditions as inner
from watchdog.config import schema_rules as keys
from watchdog.config.levels import above_or_below, comparison, peer_ratio, share_comparison
from watchdog.config.report import Mark, Report
from watchdog.config.suggest import did_you_mean
from watchdog.config.tables import Fields, Key
from watchdog.config.yaml_nodes import ScalarNode
from watchdog.core.conditions.kinds import (
    Absent,
    Across,
    Aggregate,
    By,
    Changes,
    Comparison,
    Condition,
    LogCount,
    LogEvent,
    LogMatch,
    Middle,
    Peers,
    Share,
    Silent,
    StatusEnters,
    StatusIs,
    Threshold,
)
from watchdog.core.durations import format_duration
from watchdog.core.protocols import Pattern, PatternEngine

_ANYTHING = ("x", "0 #", "中", "-- ERROR --")  # a pattern found in all of these is found everywhere
_ACROSS = {
    Aggregate.LAST: Across.AVG,
    Aggregate.AVG: Across.AVG,
    Aggregate.MIN: Across.MIN,
    Aggregate.MAX: Across.MAX,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What conditions are checked against.

    ratios: metrics of which 1 is 100 %. metrics: all there are, None where a source does not tell beforehand.
    poll: of the slowest source. forget_after: when an absent member is no longer expected.
    """

    engine: PatternEngine
    ratios: frozenset[str]
    metrics: frozenset[str] | None
    poll: timedelta
    forget_after: timedelta


def condition(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    """Return what the rule looks for, or None after reporting why there is nothing usable."""
    key = _what(fields, report)
    if key is None:
        return None
    if key is not keys.METRIC:
        _no_metric_keys(fields, key, report)
    return _BUILDERS[key.name](fields, around, report)


def _what(fields: Fields, report: Report) -> Key[object] | None:
    """Return the one key that says what the rule looks for."""
    present = [key for key in keys.CONDITION_KEYS if fields.has(key)]
    if len(present) == 1:
        return present[0]
    names = [key.name for key in keys.CONDITION_KEYS]
    if present:
        both = " and ".join(key.name for key in present)
        message = f"a rule looks for one thing, not for {both}"
        report.error(fields.key_at(present[1]), message, "make it two rules")
    elif fields.strange:
        pass  # one of these is what it looks for, misspelt and already reported
    elif stray := next((key for key in keys.METRIC_KEYS if fields.has(key)), None):
        hint = "add metric:, such as metric: gpu"
        report.error(fields.key_at(stray), f"{stray.name} says how, but not of what", hint)
    else:
        report.error(fields.mark, "does not say what to look for", f"add one of {', '.join(names)}")
    return None


def _no_metric_keys(fields: Fields, kind: Key[object], report: Report) -> None:
    levels = (keys.ABOVE, keys.BELOW, keys.CLEAR_ABOVE, keys.CLEAR_BELOW)
    for key in keys.METRIC_KEYS:
        if not fields.has(key):
            continue
        hint = ""
        if kind is keys.LOG_KEY and key in levels:
            hint = "to count lines, write it inside: log: { match: …, count: { above: 20, within: 5m } }"
        elif key is keys.BY and kind is not keys.STATUS_KEY:
            hint = f"write it inside {kind.name}:"
        report.error(
            fields.key_at(key), f"{key.name} is for metric rules, this one looks at {kind.name}", hint
        )


def metric_name(fields: Fields, key: Key[ScalarNode], around: Surroundings, report: Report) -> str:
    """Return the metric that a key names ("" if unreadable); warn if no source is known to have it."""
    node = fields.get(key)
    if node is None:
        return ""
    if around.metrics is not None and node.text not in around.metrics:
        hint = did_you_mean(node.raw, sorted(around.metrics))
        report.warning(node.mark, f"no source here is known to have a metric {node.shown!r}", hint)
    return node.text


def _metric(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    metric = metric_name(fields, keys.METRIC, around, report)
    if not metric:
        return None
    if fields.has(keys.SHARE_KEY) and fields.has(keys.PEERS_KEY):
        report.error(fields.key_at(keys.PEERS_KEY), "share and peers exclude each other", "make it two rules")
        return None
    ratio = metric in around.ratios
    if fields.has(keys.SHARE_KEY):
        return _share(fields, metric, ratio, around, report)
    if fields.has(keys.PEERS_KEY):
        return _peers(fields, metric, around, report)
    return _threshold(fields, metric, ratio, around, report)


def _threshold(
    fields: Fields, metric: str, ratio: bool, around: Surroundings, report: Report
) -> Condition | None:
    aggregate, window = _aggregate(fields, around, report)
    found = comparison(fields, ratio=ratio, spread=aggregate in _SPREADS, report=report)
    across = fields.get(keys.ACROSS) or _ACROSS.get(aggregate)
    if across is None and not fields.has(keys.BY) and not fields.has(keys.ACROSS):
        over = f"{aggregate}_over"
        hint = "add across: avg, min, max, sum or median; or by: pod or gpu for an alert each"
        report.error(fields.mark, f"{over} of which series? A task has one per pod or GPU", hint)
    if found is None:
        return None
    return Threshold(
        metric=metric,
        aggregate=aggregate,
        window=window,
        comparison=found,
        by=fields.value(keys.BY, By.TASK),
        across=across or Across.AVG,
    )


_SPREADS = frozenset({Aggregate.SLOPE, Aggregate.STDDEV})  # their values are not bound to 0 … 1


def _aggregate(fields: Fields, around: Surroundings, report: Report) -> tuple[Aggregate, timedelta | None]:
    present = [key for key in keys.OVER_KEYS if fields.has(key)]
    if not present:
        return Aggregate.LAST, None
    for key in present[1:]:
        message = f"{present[0].name} and {key.name} exclude each other"
        report.error(fields.key_at(key), message, "make it two rules")
    window = fields.get(present[0])
    check_window(window, fields, present[0], around, report)
    return Aggregate(present[0].name.removesuffix("_over")), window


def check_window(
    window: timedelta | None, fields: Fields, key: Key[object], around: Surroundings, report: Report
) -> None:
    """Warn of a window that holds one point or none."""
    if window is not None and window < 2 * around.poll:
        poll = format_duration(around.poll)
        message = f"{key.name}: {format_duration(window)} is shorter than two polls of {poll}"
        report.warning(fields.at(key), message, "such a window is rarely covered, so the rule rarely judged")


def _share(
    fields: Fields, metric: str, ratio: bool, around: Surroundings, report: Report
) -> Condition | None:
    outside = (*keys.OVER_KEYS, keys.ABOVE, keys.BELOW, keys.CLEAR_ABOVE, keys.CLEAR_BELOW)
    _refuse(fields, outside, "share has its own: share: { of: 1h, below: 10%, at_least: 80% }", report)
    share = fields.get(keys.SHARE_KEY)
    if share is None:
        return None
    report = report.scoped("share")
    of, at_least = share.get(inner.SHARE_OF), share.get(inner.SHARE_AT_LEAST)
    check_window(of, share, inner.SHARE_OF, around, report)
    found = share_comparison(share, ratio=ratio, report=report)
    clear = share.get(inner.SHARE_CLEAR)
    if clear is not None and at_least is not None and clear > at_least:
        report.error(share.at(inner.SHARE_CLEAR), "clear_below must not be more than at_least")
    if found is None or of is None or at_least is None:
        return None
    return Share(
        metric=metric,
        window=of,
        comparison=found,
        at_least=at_least,
        clear_below=clear,
        by=fields.value(keys.BY, By.TASK),
        across=fields.value(keys.ACROSS, Across.AVG),
    )


def _peers(fields: Fields, metric: str, around: Surroundings, report: Report) -> Condition | None:
    outside = (keys.ABOVE, keys.BELOW, keys.CLEAR_ABOVE, keys.CLEAR_BELOW, keys.BY, keys.ACROSS)
    _refuse(fields, outside, "peers has its own: peers: { by: pod, below: 50% }", report)
    aggregate, window = _aggregate(fields, around, report)
    peers = fields.get(keys.PEERS_KEY)
    if peers is None:
        return None
    report = report.scoped("peers")
    by = peers.value(inner.PEERS_BY, By.POD)
    if by is By.TASK:
        report.error(peers.at(inner.PEERS_BY), "by: task has no peers", "write by: pod, gpu or node")
    above = above_or_below(peers, inner.PEERS_ABOVE, inner.PEERS_BELOW, report)
    if above is None:
        return None
    ratio = peer_ratio(peers, above=above, report=report)
    if ratio is None:
        return None
    return Peers(
        metric=metric,
        aggregate=aggregate,
        window=window,
        above=above,
        ratio=ratio,
        by=by,
        middle=peers.value(inner.PEERS_MIDDLE, Middle.MEDIAN),
        min_peers=int(peers.value(inner.PEERS_MIN, 3)),
    )


def _refuse(fields: Fields, refused: Sequence[Key[object]], hint: str, report: Report) -> None:
    for key in refused:
        if fields.has(key):
            report.error(fields.key_at(key), f"{key.name} does not go with this rule", hint)


def _log(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    log = fields.get(keys.LOG_KEY)
    if log is None:
        return None
    report = report.scoped("log")
    lines = LogMatch(
        match=_patterns(log, inner.LOG_MATCH, around.engine, report),
        ignore=_patterns(log, inner.LOG_IGNORE, around.engine, report),
        pods=_text(log, inner.LOG_PODS),
        prefilter=_text(log, inner.LOG_PREFILTER),
    )
    by = By(log.value(inner.LOG_BY, inner.LogBy.TASK))
    if log.has(inner.LOG_COUNT):
        return _log_count(log, lines, by, report)
    return LogEvent(
        lines=lines,
        by=by,
        before=int(log.value(inner.LOG_BEFORE, 3)),
        after=int(log.value(inner.LOG_AFTER, 10)),
    )


def _log_count(log: Fields, lines: LogMatch, by: By, report: Report) -> Condition | None:
    count = log.get(inner.LOG_COUNT)
    if count is None:
        return None
    report = report.scoped("count")
    for key in (inner.LOG_BEFORE, inner.LOG_AFTER):
        if log.has(key):
            report.warning(log.key_at(key), f"{key.name} has no effect with count: a count shows no context")
    within = count.get(inner.COUNT_WITHIN)
    above = above_or_below(count, inner.COUNT_ABOVE, inner.COUNT_BELOW, report)
    if within is None or above is None:
        return None
    threshold = count.get(inner.COUNT_ABOVE if above else inner.COUNT_BELOW)
    clear_key, wrong = inner.COUNT_CLEAR_BELOW, inner.COUNT_CLEAR_ABOVE
    if not above:
        clear_key, wrong = wrong, clear_key
    if count.has(wrong):
        report.error(count.key_at(wrong), f"{wrong.name} does not go with it", f"write {clear_key.name}:")
    if threshold is None:
        return None
    clear = count.get(clear_key)
    if clear is not None and (clear > threshold if above else clear < threshold):
        report.error(count.at(clear_key), "is on the wrong side of the threshold")
    if not above and threshold <= 0:
        report.warning(count.at(inner.COUNT_BELOW), "there are never fewer than 0 lines: it can never fire")
    found = Comparison(above=above, threshold=threshold, clear=clear)
    return LogCount(lines=lines, within=within, comparison=found, by=by)


def _patterns(
    log: Fields, key: Key[tuple[ScalarNode, ...]], engine: PatternEngine, report: Report
) -> tuple[Pattern, ...]:
    """Compile patterns; one that is refused is reported where the engine's complaint points."""
    found: list[Pattern] = []
    for node in log.value(key, ()):
        try:
            pattern = engine.compile(node.text)
        except ValueError as error:
            report.error(_blamed(node, str(error)), f"{key.name}: {node.shown} cannot be used: {error}")
            continue
        if all(map(pattern.search, _ANYTHING)):
            what = "so every line counts" if key is inner.LOG_MATCH else "so no line ever counts"
            report.warning(node.mark, f"{key.name}: {node.shown} is found in every line, {what}")
        found.append(pattern)
    return tuple(found)


def _blamed(node: ScalarNode, complaint: str) -> Mark:
    """Return where in the pattern the part stands that the engine quotes: "reason: part (hint)"."""
    part = complaint.partition(": ")[2].partition(" (")[0]
    index = node.raw.find(part) if part and node.raw == node.text else -1
    if index < 0 or node.offset is None:
        return node.mark
    return node.mark._replace(column=node.mark.column + node.offset + index)


def _text(fields: Fields, key: Key[ScalarNode]) -> str:
    node = fields.get(key)
    return "" if node is None else node.text


def _silent(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    silent = fields.get(keys.SILENT_KEY)
    if silent is None:
        return None
    return Silent(by=By(silent.value(inner.SILENT_BY, inner.LogBy.TASK)))


def _absent(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    absent = fields.get(keys.ABSENT_KEY)
    if absent is None:
        return None
    metric = metric_name(absent, inner.ABSENT_METRIC, around, report.scoped("absent"))
    hold = fields.get(keys.FOR)
    if hold is not None and hold >= around.forget_after:
        forget = format_duration(around.forget_after)
        message = f"for: what gives no data for {forget} is no longer expected: this can never fire"
        report.warning(fields.at(keys.FOR), message, "raise defaults: forget_after, or lower it")
    return Absent(metric=metric, by=absent.value(inner.ABSENT_BY, By.POD)) if metric else None


def _status(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    status = fields.get(keys.STATUS_KEY)
    if status is None:
        return None
    if status.has(inner.STATUS_ENTERS) == status.has(inner.STATUS_IS):
        both = status.has(inner.STATUS_IS)
        message = "enters and is exclude each other" if both else "needs enters: or is:"
        hint = "enters: [failed] is an event, is: queued is a state"
        report.error(status.key_at(inner.STATUS_IS), f"status: {message}", hint)
        return None
    enters, now = status.get(inner.STATUS_ENTERS), status.get(inner.STATUS_IS)
    if enters is not None:
        return StatusEnters(statuses=frozenset(enters))
    return None if now is None else StatusIs(statuses=frozenset(now))


def _changes(fields: Fields, around: Surroundings, report: Report) -> Condition | None:
    changes = fields.get(keys.CHANGES_KEY)
    if changes is None:
        return None
    metric = metric_name(changes, inner.CHANGES_METRIC, around, report.scoped("changes"))
    if not metric:
        return None
    return Changes(
        metric=metric,
        by=changes.value(inner.CHANGES_BY, By.TASK),
        at_least=changes.value(inner.CHANGES_AT_LEAST, 1.0),
    )


_Builder = Callable[[Fields, Surroundings, Report], Condition | None]
_BUILDERS: Mapping[str, _Builder] = {
    keys.METRIC.name: _metric,
    keys.LOG_KEY.name: _log,
    keys.SILENT_KEY.name: _silent,
    keys.ABSENT_KEY.name: _absent,
    keys.STATUS_KEY.name: _status,
    keys.CHANGES_KEY.name: _changes,
}
