import random
from itertools import pairwise

import numpy as np
import pytest

from jobs.enrichment.templates import template_of
from jobs.statistics.catalogue import UNLIMITED, Catalogue
from jobs.statistics.lines import Lines
from jobs.statistics.parameters import LEAST_PANES, MOST_VALUES, TRUST, Parameters, Phase

PANE = 10 * 10**9


class Log:
    """Feeds lines of machines to parameters, as the statistics job does, some a pane."""

    def __init__(self, most=1_000):
        self.catalogue, self.parameters = Catalogue([], [], {}, UNLIMITED), Parameters({}, most)
        self.panes = 0

    def lines(self, *texts, machine="vm-1"):
        number = self.catalogue.machine_number(machine)
        rows = {"series": [template_of(text) for text in texts]}
        series = self.catalogue.numbers(number, "log", rows)
        return Lines(series, np.full(len(texts), self.panes * PANE), np.zeros(len(texts), np.int64), list(texts))

    def feed(self, *texts, machine="vm-1"):
        """What is new in these lines: text and value."""
        found = self.parameters.observe(self.lines(*texts, machine=machine), self.catalogue)
        return [(texts[one.line], one.parameter, one.value) for one in found]

    def learn(self, texts, panes=2 * LEAST_PANES):
        """Feed the texts in so many panes; nothing in them is new."""
        for part in np.array_split(np.array(texts, object), panes):
            assert self.feed(*part) == []
            self.parameters.close_pane()
            self.panes += 1
        return self

    def phases(self):
        return [Phase(phase) for phase in self.parameters.of["phase"]]


def texts(form, values):
    return [form.format(value) for value in values]


def test_a_value_that_never_came_is_new_and_stays_so():
    log = Log().learn(texts("state={} now", ["ACTIVE", "IDLE"] * TRUST))
    assert log.phases() == [Phase.CATEGORY]
    bad, good = "state=ERROR now", "state=IDLE now"
    assert log.feed(good, bad, bad) == [(bad, 0, "ERROR"), (bad, 0, "ERROR")]
    assert log.feed(bad) == [(bad, 0, "ERROR")]


def test_a_new_status_code_is_a_new_value():
    log = Log().learn(texts("GET /x status: {}", [200, 200, 200, 404] * TRUST))
    assert log.feed("GET /x status: 503") == [("GET /x status: 503", 1, "503")]


def test_few_lines_teach_nothing():
    log = Log().learn(texts("state={}", ["ACTIVE", "IDLE"] * (TRUST // 2)))
    assert log.phases() == [Phase.LEARNING]
    assert log.feed("state=ERROR") == []


def test_a_burst_of_lines_teaches_nothing():
    log = Log().learn(texts("state={}", ["ACTIVE", "IDLE"] * TRUST), panes=LEAST_PANES - 1)
    assert log.phases() == [Phase.LEARNING]


def test_an_identifier_says_nothing():
    log = Log().learn(texts("opened by u{}x", range(2 * TRUST)))
    assert log.phases() == [Phase.OPEN]
    assert log.feed("opened by zz9") == []


def test_a_category_with_too_many_new_values_was_none():
    log = Log().learn(texts("state={}", ["ACTIVE"] * TRUST))
    new = texts("state=new-{}", "abcdefghij")
    assert log.feed(*new, new[0]) == [(text, 0, text[6:]) for text in new[:MOST_VALUES]]
    assert log.phases() == [Phase.OPEN]


def test_a_date_is_no_category():
    log = Log().learn(texts("backup of {} done", ["2026-11-24"] * TRUST))
    assert log.phases() == [Phase.OPEN]


@pytest.mark.parametrize(
    ("form", "usual", "within", "below", "above"),
    [
        ("took {} seconds", lambda some: f"{some.uniform(18, 25):.2f}", ["17.1", "28"], "14", "35"),
        ("took {} ms", lambda some: f"{some.lognormvariate(3, 0.5):.3f}", ["3", "200"], "0.1", "9000"),
        ("lag {} of it", lambda some: f"{some.gauss(0, 10):.3f}", ["-55", "55"], "-9000", "9000"),
        ("sent {} bytes", lambda some: str(some.randrange(0, 1000)), ["0", "1500"], "-5000", "500000"),
    ],
)  # fmt: skip
def test_a_number_far_out_of_range_is_new(form, usual, within, below, above):
    some = random.Random(1)
    log = Log().learn([form.format(usual(some)) for _ in range(2 * TRUST)])
    assert log.phases() == [Phase.QUANTITY]
    assert log.feed(*texts(form, within)) == []
    (one, other) = log.feed(*texts(form, [below, above]))
    assert (one[0], one[2].split()[0]) == (form.format(below), "below")
    assert (other[0], other[2].split()[0]) == (form.format(above), "above")


def test_the_limit_of_a_quantity_is_named():
    log = Log().learn(texts("took {} ms", [f"{at / 4}" for at in range(40, 80)] * (TRUST // 20)))
    ((_, _, value),) = log.feed("took 99 ms")
    assert value == "above 0.02638 s"


def test_a_sequence_number_drifts_and_says_nothing():
    log = Log().learn(texts("seq {} sent", range(1000, 1000 + 3 * TRUST)))
    assert log.phases() == [Phase.OPEN]


def test_what_is_a_number_only_sometimes_says_nothing():
    values = [str(at) if at % 50 else "none1" for at in range(2 * TRUST)]
    assert Log().learn(texts("limit ({})", values)).phases() == [Phase.OPEN]


def test_each_machine_learns_for_itself():
    log = Log().learn(texts("state={}", ["ACTIVE"] * TRUST))
    assert log.feed("state=ERROR", machine="vm-2") == []
    assert log.feed("state=ERROR") == [("state=ERROR", 0, "ERROR")]


def test_several_parameters_of_a_line_may_be_new():
    log = Log().learn(["a=x b=y"] * TRUST)
    assert log.feed("a=1 b=2") == [("a=1 b=2", 0, "1"), ("a=1 b=2", 1, "2")]


def test_a_machine_has_so_many_parameters_at_most():
    log = Log(most=3)
    log.feed("a=x b=y", "c=x d=y", "e=x")
    assert log.parameters.of["series"].tolist() == [0, 0, 2]
    log.feed("c=x d=y", machine="vm-2")
    assert log.parameters.of["series"].tolist() == [0, 0, 2, 3, 3]


def test_series_that_are_evicted_are_forgotten():
    log = Log().learn(["a=x"] * TRUST + ["b=x"] * TRUST)
    log.parameters.retain(np.array([1]))
    assert log.parameters.of["series"].tolist() == [0]
    assert log.phases() == [Phase.CATEGORY]


def mixed_log():
    some = random.Random(7)
    for at in range(4 * TRUST):
        yield f"took {some.lognormvariate(1, 1):.3f} s" if at < 3 * TRUST else f"took {at}00 s"
        yield f"state={some.choice('ABC')}" if at < 3 * TRUST else f"state={some.choice('ABXYZ')}"
        yield f"seq {at} of {some.getrandbits(64):x}"


@pytest.mark.parametrize("seed", range(3))
def test_the_cut_of_the_log_does_not_show(seed):
    log, some = list(mixed_log()), random.Random(seed)
    panes = [log[at : at + 60] for at in range(0, len(log), 60)]

    def run(cut):
        fed, found = Log(), []
        for pane in panes:
            bounds = [0, *(sorted(some.sample(range(1, len(pane)), 5)) if cut else []), len(pane)]
            for begin, end in pairwise(bounds):
                found += fed.feed(*pane[begin:end])
            fed.parameters.close_pane()
            packed = fed.parameters.packed()
            fed.parameters = Parameters({name: column.copy() for name, column in packed.items()}, 1_000)
        return found, {name: column.tobytes() for name, column in packed.items()}

    whole, cut = run(False), run(True)
    assert whole == cut
    assert {value for _, _, value in whole[0]} >= {"X", "Y", "Z"}
    assert any(value.startswith("above ") for _, _, value in whole[0])
