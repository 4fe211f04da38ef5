"""The declaration of the statistics job."""

from functools import partial

from pydantic_settings import BaseSettings

from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.job import Context, Fold
from jobs.runtime.queryable import Question
from jobs.runtime.shard_state import Opener
from jobs.statistics.queryable import WindowsQuestion
from jobs.statistics.settings import StatisticsSettings, Windows, load_windows
from jobs.statistics.shard import Shard


def _opener(own: BaseSettings | None, _: TopicMap) -> Opener:
    assert isinstance(own, StatisticsSettings)
    return partial(Shard, load_windows(own.windows), limits=own.limits)


def _windows(own: BaseSettings | None) -> Windows:
    assert isinstance(own, StatisticsSettings)
    return load_windows(own.windows)


def _check(context: Context, checkpoint: Checkpoint) -> None:
    check_windows(_windows(context.own), checkpoint, context.settings.generation)


def check_windows(windows: Windows, checkpoint: Checkpoint, generation: str) -> None:
    """Raises UserError if the state in `checkpoint` was gathered by other windows; notes these in a new one."""
    now, then = windows.lines, checkpoint.pinned("windows", windows.lines)
    if now != then:
        added, gone = (
            ", ".join(line for line in one if line not in other) for one, other in ((now, then), (then, now))
        )
        raise UserError(
            f"KAPPA_STATISTICS_WINDOWS: generation {generation!r} began with other windows: without "
            f"{added or 'any new'}, with {gone or 'less'}; "
            "put them back, or start a new one: kappa run statistics --generation NAME"
        )


def _questions(own: BaseSettings | None) -> tuple[Question, ...]:
    return (WindowsQuestion(_windows(own)).question(),)


def _pane(own: BaseSettings | None) -> int:
    """Windows are emitted at the ends of panes."""
    return _windows(own).pane


FOLD = Fold(_opener, check=_check, questions=_questions, step=_pane)
