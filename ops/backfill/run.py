"""Plans a backfill, or finds the plan of one that was begun, and runs it to its end."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.backfill.backfill import PLAN, Backfill, Note, Plan
from ops.backfill.steps import buckets, cut
from ops.replay import restore
from ops.replay.plan import check_name, inputs, parse_changes, parse_time
from ops.replay.registry import Generation, Registry, write
from ops.replay.run import only_one
from ops.savepoints.store import Store

JOB = "enrichment"  # the first one: it reads what is archived as it came


@dataclass(frozen=True)
class Request:
    """The options of `kappa backfill`."""

    name: str
    begin: str = "earliest"
    until: str = "latest"
    changes: Sequence[str] = ()
    step_records: int = 200_000

    def as_dict(self) -> dict[str, Any]:
        """What a backfill that is resumed must have been begun with."""
        return {"from": self.begin, "to": self.until, "set": sorted(self.changes)}


Report = Callable[[int, int, Note], None]  # records done, records in all, the last step's note


def run(request: Request, settings: Settings, spark: SparkSession, report: Report) -> Note:
    """Run a backfill to its end, from its last step on if it was begun before. Returns what there is in the end.

    Raises UserError naming the option that can't be used, or if the archive lacks what is asked for.
    """
    registry = Registry.read(settings.kafka_bootstrap)
    known = registry.names
    generation = _generation(request, registry)
    own = settings.model_copy(update={"generation": request.name})
    with only_one(own):
        topics = registry.topics(request.name, load_topics(settings.topics_file))
        names = [topic.name for topic in inputs(JOB, topics)]
        others = [one for one in known if one != request.name]
        archived = restore.archived(others, names, settings, spark)
        store = Store.of(own.checkpoint_of("backfill"))
        plan = _found(store, request)
        if plan is None:
            check_name(request.name, known)
            plan = _planned(store, request, archived, generation)
        write(settings.kafka_bootstrap, _as_it_is(generation, plan))
        total = sum(plan.records)

        def told(step: int, note: Note) -> None:
            report(sum(plan.records[: step + 1]), total, note)

        note = Backfill(plan, archived, generation, topics, settings).run(told)
        write(settings.kafka_bootstrap, _as_it_is(generation, plan).model_copy(update={"state": "caught up"}))
    return note


def _generation(request: Request, registry: Registry) -> Generation:
    """Its plan in the registry, which is written there before it begins, so that `kappa replay` knows it."""
    jobs = tuple(name for name in JOBS.enabled() if JOBS[name].is_replayable or JOBS[name].sink == "delta")
    generation = Generation(
        name=request.name,
        base=registry.promotion.generation,
        jobs=jobs,
        begin=request.begin,
        until=request.until,
        begin_ms=None if request.begin == "earliest" else parse_time(request.begin),
        source="delta",
        settings=parse_changes(request.changes, jobs),
    )
    if request.until != "latest":
        parse_time(request.until)
    check_name(request.name)
    registry.generations[request.name] = generation
    return generation


def _found(store: Store, request: Request) -> Plan | None:
    try:
        plan = Plan.model_validate_json(store.read(PLAN))
    except FileNotFoundError:
        return None
    if plan.request != request.as_dict():
        raise UserError(
            f"--as {request.name}: was begun with {_options(plan.request)}, not with {_options(request.as_dict())}; "
            f"repeat those, choose another name, or drop it: kappa replay drop {request.name}"
        )
    return plan


def _options(request: dict[str, Any]) -> str:
    return " ".join([f"--from {request['from']}", f"--to {request['to']}", *(f"--set {one}" for one in request["set"])])


def _planned(store: Store, request: Request, archived: Any, generation: Generation) -> Plan:
    begin, end = restore.bounds(generation)
    restore.check_nothing_is_gone(archived, begin)
    steps = cut(buckets(restore.between(archived, begin, end)), request.step_records)
    if not steps.records:
        raise UserError(f"--from {request.begin} --to {request.until}: the archive holds no telemetry of that time")
    plan = Plan(id=uuid.uuid4().hex, request=request.as_dict(), bounds=steps.bounds, records=steps.records)
    store.write(PLAN, plan.model_dump_json().encode())
    return plan


def _as_it_is(generation: Generation, plan: Plan) -> Generation:
    """With what it reads: a replay of that part of the log, which ends."""
    replay = Replay(start=plan.bounds[0], end=plan.bounds[-1])
    return generation.model_copy(update={"replay": replay, "state": "replaying"})
