from ops.console.views.timeline import LABEL, LEAST_WIDTH, SPAN, timeline

BEGAN = 1_790_000_000_000


def member(machine, since, ended=None, score=10.0, is_indexed=True):
    now = {"ended": ended} if is_indexed else None
    return {"machine": machine, "verdict": "state_change", "since": since, "score": score, "now": now}


def incident(*members, updated=BEGAN + 100_000, ended=None):
    return {"started": BEGAN, "updated": updated, "ended": ended, "members": list(members)}


def test_a_bar_lasts_from_its_first_window_to_its_end():
    drawn = timeline(incident(member("vm-1", BEGAN + 25_000, BEGAN + 75_000)))
    (bar,) = drawn.bars
    assert (bar.x, bar.width) == (LABEL + SPAN / 4, SPAN / 2)
    assert (bar.verdict, bar.is_open) == ("state change", False)


def test_what_is_open_lasts_to_the_newest_time_and_so_does_what_is_not_indexed_yet():
    drawn = timeline(incident(member("vm-1", BEGAN), member("vm-2", BEGAN + 50_000, is_indexed=False)))
    assert [(bar.x + bar.width, bar.is_open) for bar in drawn.bars] == [(LABEL + SPAN, True), (LABEL + SPAN, False)]
    assert drawn.bars[1].y > drawn.bars[0].y


def test_a_moment_is_seen_also_at_the_end_of_the_span():
    (bar,) = timeline(incident(member("vm-1", BEGAN + 100_000))).bars
    assert bar.width == LEAST_WIDTH
    assert bar.x + bar.width <= LABEL + SPAN


def test_the_span_holds_what_ends_after_the_incidents_last_news():
    drawn = timeline(incident(member("vm-1", BEGAN, BEGAN + 100_000), updated=BEGAN))
    assert drawn.bars[0].x + drawn.bars[0].width == LABEL + SPAN
    assert drawn.ticks[0].time == BEGAN


def test_scores_have_the_colours_of_the_heat_map_and_long_names_are_cut():
    drawn = timeline(incident(member("m" * 300, BEGAN, score=50.0), member("vm-2", BEGAN, score=None)))
    assert [bar.level for bar in drawn.bars] == [5, 1]
    assert (drawn.bars[0].machine, len(drawn.bars[0].name)) == ("m" * 300, 28)
