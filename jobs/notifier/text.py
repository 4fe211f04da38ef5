"""The words of a notification: what, where, since when, how unusual, the likeliest cause. For a person on call."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import log

from jobs.notifier.notice import Alert, Incident, Notice, Novelty, Places

KINDS = {"incidents": "Incident", "alerts": "Alert", "novelties": "Novelty"}
PHASES = {"start": "started", "update": "goes on", "end": "is over"}
SHOWN_MACHINES = 5
SHOWN_CAUSES = 3
TITLE_CHARACTERS = 150
LONGEST_TEXT = 2_000  # of a record's own sentence
LN_10 = log(10)


def title_of(notice: Notice) -> str:
    """One line: how grave, what, where."""
    head = f"[{notice.severity}] {KINDS[notice.topic]} {PHASES[notice.finding.phase]}: "
    return _cut(head + " ".join(_gist(notice).split()), TITLE_CHARACTERS)


def text_of(notice: Notice, link: str = "") -> str:
    """Some lines, each with its name first."""
    finding = notice.finding
    lines = [
        ("What", _cut(finding.text, LONGEST_TEXT)),
        ("Where", _where(notice)),
        ("Since", _since(finding.since_unix_nano, finding.time_unix_nano, is_over=finding.phase == "end")),
        *_details(notice),
        *([("Link", link)] if link else []),
        ("Id", f"{notice.topic}/{finding.id}"),
    ]
    return "\n".join(f"{name}: {text}" for name, text in lines)


def _gist(notice: Notice) -> str:
    finding = notice.finding
    match finding:
        case Incident(machines=1) | Novelty():
            return finding.text
        case Incident():
            likeliest = f", {finding.causes[0].kind} {finding.causes[0].name}" if finding.causes else ""
            return f"{finding.machines} machines{likeliest}"
        case Alert():
            return f"{finding.name} on {finding.machine}"
    return finding.text


def _where(notice: Notice) -> str:
    machines = notice.machines
    count = max(len(machines), getattr(notice.finding, "machines", 1))
    shown = [_placed(name, places) for name, places in machines[:SHOWN_MACHINES]]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return ", ".join(shown) + more


def _placed(machine: str, places: Places) -> str:
    facts = ", ".join(f"{name} {places[name]}" for name in ("site", "hypervisor", "tenant", "role") if name in places)
    return f"{machine} ({facts})" if facts else machine


def _since(since: int, until: int, *, is_over: bool) -> str:
    lasted = timedelta(seconds=max(0, until - since) // 10**9)
    return f"{_shown_time(since)}, {'over after' if is_over else 'for'} {lasted} by {_shown_time(until)}"


def _shown_time(time_unix_nano: int) -> str:
    return f"{datetime.fromtimestamp(time_unix_nano // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _details(notice: Notice) -> Iterator[tuple[str, str]]:
    match notice.finding:
        case Incident() as incident:
            yield "How unusual", f"{_rarity(incident.score)}, the strongest of {incident.novelties} novelties"
            if incident.causes:
                causes = (_cause(one.kind, one.name, one.affected, one.machines) for one in incident.causes)
                yield "Likeliest cause", "; then ".join(list(causes)[:SHOWN_CAUSES])
        case Novelty() as novelty:
            yield "How unusual", _rarity(novelty.score)
            if novelty.observed is not None:
                yield "Observed", _observed(novelty)
        case Alert() as alert:
            yield "How unusual", f"a pattern that people have declared: rule {alert.rule}"


def _rarity(score: float) -> str:
    """A score is -ln of a probability."""
    if score < LN_10:
        return f"score {score:.1f}: not unusual by itself"
    return f"score {score:.1f}: by chance less often than once in 10^{int(score / LN_10)} windows of its series"


def _cause(kind: str, name: str, affected: int, machines: int) -> str:
    return f"{kind} {name}" if kind == "machine" else f"{kind} {name} ({affected} of its {machines} machines)"


def _observed(novelty: Novelty) -> str:
    unit = f" {novelty.unit}" if novelty.unit else ""
    text = f"{novelty.observed:.4g}{unit}"
    if novelty.expected_low is None or novelty.expected_high is None:
        return text
    return f"{text}, expected {novelty.expected_low:.4g} to {novelty.expected_high:.4g}{unit}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
