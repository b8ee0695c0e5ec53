"""What several verbs say alike: times and values in the rules' own zone, headings, and what is not live."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from watchdog.cli.output import Output, Style, safe
from watchdog.core.rules import Severity
from watchdog.core.sparkline import sparkline
from watchdog.core.wording.languages import wording
from watchdog.core.wording.voice import Voice, voice_of
from watchdog.engine.showing import zone_of
from watchdog.engine.views import EvidenceView, IncidentView

_SEVERITY = {Severity.CRITICAL: Style.RED, Severity.WARNING: Style.YELLOW, Severity.INFO: Style.BLUE}
DASH = "-"
RATIO = "ratio"


class Teller:
    """Says views to one output. at: of which moment they are; None = unknown."""

    def __init__(self, output: Output, timezone: str, at: datetime | None) -> None:
        self.output = output
        self.now = at or datetime.fromtimestamp(0, UTC)
        self.voice: Voice = voice_of(wording("en"), zone_of(timezone), self.now)
        self._apart = True  # nothing was written yet, or a blank line was the last

    def time(self, moment: datetime | None) -> str:
        """Say a moment."""
        return DASH if moment is None else self.voice.time(moment)

    def seconds(self, duration: float | None) -> str:
        """Say a duration."""
        return DASH if duration is None else self.voice.duration(timedelta(seconds=duration))

    def age(self, moment: datetime | None) -> str:
        """Say how long ago a moment was."""
        return DASH if moment is None else self.voice.duration(self.now - moment)

    def value(self, value: float | None, unit: str = "") -> str:
        """Say a value in its unit."""
        return DASH if value is None else self.voice.value(value, unit)

    def heading(self, text: str) -> None:
        """Write a heading, with a blank line before it."""
        if not self._apart:
            self.output.line()
        self.output.line(self.output.styled(safe(text), Style.BOLD))
        self._apart = False

    def line(self, text: str = "", style: Style | None = None) -> None:
        """Write a line of text from anywhere."""
        self._apart = not text
        self.output.line(self.output.styled(safe(text), style) if style else safe(text))

    def stored(self, *, live: bool, at: datetime | None, remark: str = "") -> None:
        """Say that what follows is from the state file, if it is."""
        if live:
            return
        when = (
            f"this is what it stored at {self.time(at)} {self.voice.zone_name}" if at else "it stored nothing"
        )
        self.line(f"{remark or 'the daemon is not running'}; {when}", Style.YELLOW)
        self.line()

    def severity(self, severity: str) -> str:
        """Return a severity in its colour."""
        style = _SEVERITY.get(Severity(severity)) if severity in _SEVERITY else None
        return self.output.styled(severity, style) if style else severity

    def evidence(self, evidence: EvidenceView) -> None:
        """Write one piece of evidence: the verdict, the course, the log lines."""
        if evidence.said:
            self.line(f"  {evidence.said}")
        if evidence.of > 1:
            covered = f", {evidence.covered} with data" if evidence.covered != evidence.of else ""
            self.line(f"  {evidence.affected} of {evidence.of} affected{covered}")
        drawn = sparkline(evidence.spark, ratio=evidence.unit == RATIO)
        if drawn:
            known = [value for value in evidence.spark if value is not None]
            low, high = self.value(min(known), evidence.unit), self.value(max(known), evidence.unit)
            self.line(f"  {drawn}  min {low}, max {high}, over {self.seconds(evidence.spark_s)}")
        for line in evidence.lines:
            mark = ">" if line.matched else " "
            times = f" (×{line.repeated})" if line.repeated > 1 else ""
            self.line(
                f"  {mark} {self.time(line.at)} {line.pod + ': ' if line.pod else ''}{line.text}{times}"
            )
        if evidence.more_lines:
            self.line(f"    and {evidence.more_lines} more matching lines")
        if evidence.detail and evidence.detail != evidence.said:
            self.line(f"  {evidence.detail}")

    def incident_rows(self, incidents: "tuple[IncidentView, ...]") -> None:
        """Write incidents as a table."""
        rows = [
            (
                one.id,
                self.time(one.opened),
                self.seconds((one.closed - one.since).total_seconds()) if one.closed else "open",
                one.severity,
                one.rule,
                one.task or DASH,
                ended(one),
                one.said,
            )
            for one in incidents
        ]
        self.output.table(("INCIDENT", "OPENED", "LASTED", "SEVERITY", "RULE", "TASK", "ENDED", "WHAT"), rows)


def print_json(output: Output, view: object) -> None:
    """Write a view as JSON, for programs: as the daemon says it, times in UTC, durations in seconds."""
    output.line(msgspec.json.format(msgspec.json.encode(view), indent=2).decode())


def ended(incident: IncidentView) -> str:
    """Say how an incident ended; "-" while it is open."""
    if incident.closed is None:
        return DASH
    return f"{incident.reason} ({incident.note})" if incident.note else incident.reason


def joined(labels: Mapping[str, str]) -> str:
    """Say labels in one cell: the values of pod, gpu and node, and name=value of others."""
    known = ("node", "pod", "gpu")
    parts = [labels[name] for name in known if name in labels]
    parts += [f"{name}={value}" for name, value in labels.items() if name not in known]
    return " ".join(parts) or DASH
