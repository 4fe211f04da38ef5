from jobs.detector.population import seen_before
from jobs.detector.population.seen_before import SeenBefore
from jobs.detector.saved_state import NOTHING, Saved


def test_a_name_is_remembered_for_one_period_at_least_and_two_at_most() -> None:
    names = SeenBefore(NOTHING, 100)
    names.add(["pod-1"], 1000)
    names.add(["pod-2"], 1090)
    assert [names.has(name, 1090) for name in ("pod-1", "pod-2", "pod-3")] == [True, True, False]
    assert [names.has(name, 1190) for name in ("pod-1", "pod-2")] == [True, True]
    assert [names.has(name, 1300) for name in ("pod-1", "pod-2")] == [False, False]


def test_after_a_long_time_nothing_is_remembered() -> None:
    names = SeenBefore(NOTHING, 100)
    names.add(["pod-1"], 1000)
    assert not names.has("pod-1", 1250)


def test_it_is_empty_before_the_first_name_and_when_all_are_forgotten() -> None:
    names = SeenBefore(NOTHING, 100)
    assert names.is_empty(1000)
    names.add(["pod-1"], 1000)
    assert [names.is_empty(window) for window in (1000, 1190, 1300)] == [False, False, True]


def test_of_too_many_names_the_oldest_go(monkeypatch) -> None:
    monkeypatch.setattr(seen_before, "MOST", 10)
    names = SeenBefore(NOTHING, 10**6)
    names.add((f"pod-{number}" for number in range(95)), 10**7)
    assert [number for number in range(95) if names.has(f"pod-{number}", 10**7)] == list(range(80, 95))


def test_it_goes_on_from_what_was_saved() -> None:
    names = SeenBefore(NOTHING, 100)
    names.add(["pod-1", "pod-2"], 1000)
    names.add(["pod-3"], 1110)
    saved = names.saved()
    again = SeenBefore(Saved(dict(saved.header), dict(saved.arrays)), 100)
    assert all(again.has(name, 1110) for name in ("pod-1", "pod-2", "pod-3"))
    assert {name: one.tolist() for name, one in again.saved().arrays.items()} == {
        name: one.tolist() for name, one in saved.arrays.items()
    }
