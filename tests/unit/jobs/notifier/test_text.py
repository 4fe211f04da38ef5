"""What a person on call reads."""

from jobs.notifier.text import TITLE_CHARACTERS, text_of, title_of
from tests.unit.jobs.notifier.records import alert, incident, notice, novelty


def test_an_incident_of_several_machines():
    found = notice(incident(machines=7, second=95, score=41.2, text="7 machines, likely because of hypervisor hv-1"))
    assert title_of(found) == "[critical] Incident started: 7 machines, hypervisor hv-1"
    assert text_of(found, "https://kibana/i1").splitlines() == [
        "What: 7 machines, likely because of hypervisor hv-1",
        "Where: vm-1 (site lund, hypervisor hv-1, tenant a, role upf), "
        "vm-2 (site kista, hypervisor hv-2, tenant b, role amf), vm-3, vm-4, vm-5 and 2 more",
        "Since: 2024-09-23 14:13:20 UTC, for 0:01:35 by 2024-09-23 14:14:55 UTC",
        "How unusual: score 41.2: by chance less often than once in 10^17 windows of its series, "
        "the strongest of 7 novelties",
        "Likeliest cause: hypervisor hv-1 (7 of its 4 machines)",
        "Link: https://kibana/i1",
        "Id: incidents/i1",
    ]


def test_the_end_of_an_incident_of_one_machine():
    found = notice(incident(phase="end", second=3700, causes=[]))
    assert title_of(found) == "[warning] Incident is over: cpu on vm-1 is 0.9; expected 0.1 to 0.3"
    assert "Since: 2024-09-23 14:13:20 UTC, over after 1:01:40 by 2024-09-23 15:15:00 UTC" in text_of(found)
    assert "cause" not in text_of(found) and "Link" not in text_of(found)


def test_an_incident_counts_the_machines_that_its_record_does_not_name():
    assert "vm-2 (site kista, hypervisor hv-2, tenant b, role amf) and 48 more" in text_of(
        notice(incident(machines=2) | {"machines": 50})
    )


def test_an_alert():
    found = notice(alert(), "alerts")
    assert title_of(found) == "[critical] Alert started: Too hot on vm-2"
    assert "How unusual: a pattern that people have declared: rule hot" in text_of(found)


def test_a_novelty():
    lines = text_of(notice(novelty(), "novelties")).splitlines()
    assert "Observed: 0.9 1, expected 0.1 to 0.3 1" in lines
    assert "How unusual: score 30.0: by chance less often than once in 10^13 windows of its series" in lines


def test_a_novelty_that_needs_no_figures():
    found = text_of(notice(novelty(score=0.0, observed=None, verdict="gone"), "novelties"))
    assert "How unusual: score 0.0: not unusual by itself" in found and "Observed" not in found
    assert "Observed: 0.9\n" in text_of(notice(novelty(expected_low=None, unit=None), "novelties"))


def test_a_title_is_one_line_of_bounded_length():
    title = title_of(notice(incident(text="a\r\nb " + "x" * 1000)))
    assert len(title) == TITLE_CHARACTERS and title.startswith("[warning] Incident started: a b x") and title[-1] == "…"
