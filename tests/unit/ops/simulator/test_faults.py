import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.errors import UserError
from ops.simulator import faults, signals
from ops.simulator.faults import KINDS, SECOND, Fault, parse


def test_a_spec_without_duration_takes_the_kinds_own():
    assert parse("cpu_hog:vm-17@+60s") == Fault("cpu_hog", "vm-17", 60 * SECOND, KINDS["cpu_hog"].duration, "")


def test_a_spec_may_give_its_duration():
    fault = parse("silence:vm-05@+1.5m/500ms")
    assert (fault.start, fault.duration, fault.end) == (90 * SECOND, SECOND // 2, 90 * SECOND + SECOND // 2)


@given(st.sampled_from(list(KINDS)), st.integers(0, 10_000), st.integers(1, 10_000))
def test_every_kind_and_time_is_read_back(kind, start, duration):
    fault = parse(f"{kind}:a.b-c@+{start}s/{duration}m")
    assert (fault.kind, fault.machine) == (kind, "a.b-c")
    assert (fault.start, fault.duration) == (start * SECOND, duration * 60 * SECOND)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cpu_hog", "write KIND:MACHINE@"),
        ("cpu_hog:vm-17@60s", "write KIND:MACHINE@"),
        ("cpu_hgo:vm-17@+60s", "unknown kind 'cpu_hgo'; use one of cpu_hog"),
        ("cpu_hog:@+60s", "machine is missing"),
        ("cpu_hog:vm-17@+soon", "start of fault .* 'soon' is not a time"),
        ("cpu_hog:vm-17@+60", "start of fault .* '60' is not a time"),
        ("cpu_hog:vm-17@+60s/long", "duration of fault .* 'long' is not a time"),
        ("cpu_hog:vm-17@+60s/0s", "give more than 0"),
    ],
)
def test_a_bad_spec_is_refused_with_its_fix(spec, message):
    with pytest.raises(UserError, match=message):
        parse(spec)


@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    try:
        fault = parse(text)
    except UserError:
        return
    assert fault.kind in KINDS


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["silence:vm-77@+1s"], "no machine 'vm-77'"),
        (["new_vm:vm-01@+1s"], "'vm-01' is there already"),
        (["new_vm:vm-77@+1s", "new_vm:vm-77@+2s"], "'vm-77' is there already"),
    ],
)
def test_a_fault_that_fits_no_machine_is_refused(specs, message):
    with pytest.raises(UserError, match=message):
        faults.check([parse(spec) for spec in specs], ["vm-01", "vm-02"])


def test_a_new_machine_may_have_faults_of_its_own():
    faults.check([parse("silence:vm-77@+9s"), parse("new_vm:vm-77@+1s")], ["vm-01"])


def test_a_fault_is_active_from_its_start_until_before_its_end():
    fault = parse("silence:vm-01@+10s/5s")
    assert [fault.active(second * SECOND) for second in (9, 10, 14, 15)] == [False, True, True, False]


def test_a_fault_without_end_stays():
    assert parse("state_change:vm-01@+10s").active(10**18)


def test_a_ramp_grows_to_its_full_strength():
    fault, (effect,) = parse("memory_leak:vm-01@+10s/100s"), KINDS["memory_leak"].effects
    assert [fault.strength(effect, second * SECOND) for second in (10, 60, 110)] == [0.0, 0.5, 1.0]


def test_every_effect_and_derived_series_exists_on_every_role():
    named = {e.series for kind in KINDS.values() for e in (*kind.effects, *kind.guest_effects)}
    named |= {series for kind in KINDS.values() for series in (*kind.derived, *kind.guest_derived)}
    for role in signals.ROLE_SIGNALS:
        assert named <= {signal.instrument.series for signal in signals.of_role(role)}


def test_facts_say_what_happened_and_which_answers_are_right():
    facts = parse("cpu_hog:hv-01@+60s/30s").as_dict(1000 * SECOND, [], ["vm-01"])
    assert (facts["start_unix_nano"], facts["end_unix_nano"]) == (1060 * SECOND, 1090 * SECOND)
    assert facts["series"] == [faults.USER, faults.LOAD, faults.IDLE]
    assert facts["guests"] == {"vm-01": [faults.STEAL, faults.IDLE]}
    assert {"topic": "novelties", "verdict": "anomaly"} in facts["answers"]
