import pytest

from jobs.detector.apply_control import ControlApplier
from jobs.detector.control import allow, not_anomalous, reset, suppress
from jobs.detector.model.protocol import Turn
from jobs.detector.rules import Rule
from jobs.detector.saved_state import NOTHING
from jobs.detector.trackers.machines import MachineTracker
from jobs.detector.trackers.new_entities import NewEntityTracker
from jobs.detector.trackers.series import SeriesTracker
from jobs.detector.trackers.silence import SilenceTracker
from tests.unit.jobs.detector.trackers.world import FIRST, inputs, judgement

NEXT = FIRST + 1


class World:
    """A shard in which disk of vm-0, row 1, has an open anomaly."""

    def __init__(self) -> None:
        self.inputs = inputs()
        self.series = SeriesTracker(self.inputs, NOTHING)
        self.silence = SilenceTracker(self.inputs, NOTHING)
        self.new = NewEntityTracker(self.inputs, NOTHING)
        rows = (self.series, MachineTracker(self.inputs, NOTHING))
        self.controls = ControlApplier(self.inputs, rows, self.silence, self.new)
        (self.start,) = self.series.judge(judgement({1: 20.0}), 1, FIRST, set())


@pytest.fixture
def world() -> World:
    return World()


def test_feedback_ends_a_novelty_and_makes_its_values_normal(world: World) -> None:
    (end,) = world.controls.apply_control(not_anomalous(world.start), NEXT)
    assert (end["id"], end["phase"], end["feedback"]) == (world.start["id"], "end", "not-anomalous")
    assert end["text"].endswith("a person says that this is normal, as are values of 5 to 9.4")
    assert world.inputs.overrides.is_normal(1, 9.0)
    assert list(world.series.rows()) == []


def test_feedback_on_what_is_over_emits_its_newest_record_once_more(world: World) -> None:
    (end,) = world.series.judge(judgement({}, turns={1: Turn.PASSED}), 1, NEXT, set())
    (again,) = world.controls.apply_control(not_anomalous(world.start, end), NEXT + 5)
    assert again == end | {name: again[name] for name in ("time_unix_nano", "text", "feedback")}
    assert world.controls.apply_control(not_anomalous(world.start, end), NEXT) == []  # it isn't over yet


def test_feedback_on_an_unknown_machine_does_nothing(world: World) -> None:
    assert world.controls.apply_control(not_anomalous(world.start | {"machine": "vm-9"}), NEXT) == []
    assert not world.inputs.overrides.excuses_values()


def test_feedback_on_a_silence_excuses_the_machine_while_it_lasts(world: World) -> None:
    silence = {"id": "s", "machine": "vm-1", "verdict": "silence", "kind": "machine", "observed": 40.0, "text": "t"}
    world.silence.silent[1] = silence
    (end,) = world.controls.apply_control(not_anomalous(silence), NEXT)
    assert end["id"] == "s"
    assert world.inputs.overrides.gaps == {1: 4}
    assert world.inputs.overrides.is_usual_gap(1, 100)


def test_a_reset_ends_novelties_of_its_series_and_lets_the_model_learn_them_anew(world: World) -> None:
    world.inputs.overrides.call_normal(1, 9.0, 5.0)
    world.inputs.overrides.call_normal(4, 9.0, 5.0)
    assert world.controls.apply_control(reset("net", "vm-0"), NEXT) == []
    (end,) = world.controls.apply_control(reset("d*", "vm-0"), NEXT)
    assert (end["id"], end["phase"]) == (world.start["id"], "end")
    assert set(world.inputs.overrides.normal) == {4}
    assert len(world.inputs.model) == 6


def test_a_rule_ends_what_it_suppresses_and_holds_until_it_is_taken_back(world: World) -> None:
    rule = Rule(series="disk")
    (end,) = world.controls.apply_control(suppress(rule), NEXT)
    assert end["text"].endswith(f"suppressed by rule {rule.id}")
    assert world.series.judge(judgement({1: 20.0}), 1, NEXT, set()) == []
    assert world.controls.apply_control(allow(rule.id), NEXT) == []
    assert [n["series"] for n in world.series.judge(judgement({1: 20.0}), 1, NEXT, set())] == ["disk"]
