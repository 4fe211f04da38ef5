"""What control events do: operators' feedback, resets of series, rules that suppress novelties and allow them again."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from jobs.detector import novelties
from jobs.detector.novelties import Novelty
from jobs.detector.rules import Rule
from jobs.detector.trackers.silence import SilenceTracker
from jobs.detector.trackers.tracker import Inputs, RowTracker, Tracker, end_novelties

NOT_ANOMALOUS = "not-anomalous"
WITHOUT_VALUE = ("new_entity", "gone")  # verdicts that leave nothing to call normal

Control = Mapping[str, Any]


def _person(control: Control) -> str:
    """Who says it; events of version 0.1.0 don't tell."""
    return str(control.get("by") or "a person")


class ControlApplier:
    """Changes the overrides, the model and the trackers' novelties of one shard."""

    def __init__(
        self, inputs: Inputs, row_trackers: Sequence[RowTracker], silence: SilenceTracker, new_entities: Tracker
    ) -> None:
        self.inputs, self.overrides, self.settings = inputs, inputs.overrides, inputs.settings
        self.row_trackers, self.silence = row_trackers, silence
        self.trackers: tuple[Tracker, ...] = (*row_trackers, silence, new_entities)

    def apply_control(self, control: Control, window: int) -> list[Novelty]:
        """Do what a control event says, before `window` takes its step; returns the novelties' ends that it causes."""
        time = self.settings.end_of(window)
        match control["action"]:
            case "feedback":
                return self._feedback(control, time)
            case "reset":
                return self._reset(control, window, time)
            case "retire":
                return self._retire(control)
            case "suppress":
                rule = self.overrides.rules[control["rule"]] = Rule.of(control)
                return end_novelties(self.trackers, rule.matches, time, f"suppressed by rule {control['rule']}")
            case _:
                self.overrides.rules.pop(control["rule"], None)
                return []

    def _feedback(self, control: Control, time: int) -> list[Novelty]:
        """A novelty is none: it ends, if it hasn't, and what it said isn't emitted again."""
        machine = self.inputs.machines.number(control["machine"])
        if machine is None:
            return []
        why = f"{_person(control)} says that this is normal" + self._call_normal(control, machine)
        ended = end_novelties(self.trackers, lambda novelty: novelty["id"] == control["novelty"], time, why)
        known = orjson.loads(control.get("novelty_record", "{}"))
        if not ended and known.get("time_unix_nano", time) < time:  # it was over
            ended = [novelties.ended(known, time, why)]
        return [record | {"feedback": NOT_ANOMALOUS} for record in ended]

    def _retire(self, control: Control) -> list[Novelty]:
        """The inventory says until when a machine is there; see SilenceTracker."""
        machine = self.inputs.machines.number(control["machine"])
        if machine is not None:
            self.inputs.machines.retired_at[machine] = int(control["valid_to_unix_nano"])
        return []

    def _call_normal(self, control: Control, machine: int) -> str:
        """Override what the novelty was about; returns what to add to the text of its end."""
        if control["verdict"] == "silence":
            gap = int(control["observed"] // self.settings.window_seconds)
            self.overrides.call_gap_normal(machine, gap)
            self.inputs.machines.longest_gap[machine] = max(gap, int(self.inputs.machines.longest_gap[machine]))
            if self.silence.is_silent(machine):
                self.overrides.excused.add(machine)
        elif control["verdict"] in WITHOUT_VALUE:
            return ""
        elif control["kind"] == "machine":
            self.overrides.call_calm(machine, control["observed"])
        else:
            row = self.inputs.series.row(machine, control["kind"], control["series"])
            if row is not None:
                low, high = self.overrides.call_normal(row, control["observed"], control["expected"])
                return f", as are values of {low:.4g} to {high:.4g}"
        return ""

    def _reset(self, control: Control, window: int, time: int) -> list[Novelty]:
        """Some series are learned anew, as if they had never been seen, but no novelty says that they are new."""
        machines = self.inputs.machines.matching(control["machine"])
        rows = self.inputs.series.matching(machines, control["series"])
        if not len(rows):
            return []
        self.inputs.model.reset(rows, window)
        self.inputs.machine_model.reset(rows)
        reset = set(rows.tolist())
        self.overrides.renumber({row: row for row in self.overrides.normal if row not in reset})
        ids = {identity for tracker in self.row_trackers for identity in tracker.ids_about(reset)}
        why = f"its series begins anew, {_person(control)} says"
        return end_novelties(self.trackers, lambda novelty: novelty["id"] in ids, time, why)
