"""The transform of enrichment: decoded rows in, records with their topic and partition out. Built-in expressions only.

Every data point and log line goes to exactly one of `events`, `events.late` and `events.rejected` (the dead letters).
Which one depends on the log alone: on the event's own time and the Kafka timestamp of its record.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import lru_cache
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from connectors.decoders.columns import TOO_LARGE, event_columns, event_rows
from connectors.prepared import Step
from infra.contract.dead_letters import REJECTED_BYTES, REJECTED_NAME
from infra.contract.inventory import DEPENDS_ON, FACTS
from infra.contract.lateness import AllowedLateness, Decision
from infra.contract.schemas import EVENTS
from infra.contract.topics import Topic, TopicMap
from infra.contract.versions import version_header
from jobs.enrichment import limits as names
from jobs.enrichment.coalesce import Coalescing, apart
from jobs.enrichment.identity import FORGED, PRINCIPAL, REASON, is_forged
from jobs.enrichment.limits import Limits
from jobs.enrichment.log_lines import rendering
from jobs.enrichment.resource import own_facts
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.templates import template

UNKNOWN_MACHINE = "unknown_machine"  # the notes by which they are counted
CUT = "cut"
# A record whose JSON is larger is rejected: sink and brokers take at most 10 MB.
RECORD_BYTES = 9_000_000

_COLUMNS = EVENTS["events"].dataType.simpleString()
_REASONS = {
    "future": "the event's time is later than the broker's clock allows: a wrong clock on the machine",
    "no_time": "the event has no valid time",
    "no_value": "the data point has no value",
    "not_finite": "the data point's value is not a finite number",
    FORGED: REASON,
    **names.REASONS,
    TOO_LARGE: "the record, or what would be written of it, is too large; let its collector send smaller batches",
}


Decisions = tuple[Decision, ...]


class Enrichment(Protocol):
    """From decoded rows, inventory and the decisions on lateness to records addressed for the transactional sink."""

    def __call__(self, decoded: DataFrame, inventory: DataFrame, decisions: Decisions = (), /) -> DataFrame:
        """Decoded rows have Kafka's columns and schemas.DECODED.

        The inventory has one row a machine: machine, history (see jobs/enrichment/inventory.py).
        """


def enrichment(
    topics: TopicMap,
    coalesce: Callable[[], Coalescing] = apart,
    settings: EnrichmentSettings | None = None,
    prepare: Callable[[Step], Step] = lambda step: step,
) -> Enrichment:
    """The transform of a micro-batch.

    `coalesce` says how rows are coalesced into records. The column expressions are built here, once: their thousands of
    calls to the JVM would cost each micro-batch 0.7 s. `prepare` may have a step planned once, too
    (`connectors.prepared`).
    """
    settings = settings or EnrichmentSettings()
    telemetry, limits, render_lines = topics.telemetry, Limits(settings), rendering(settings)
    received = (F.unix_millis("timestamp") * 1_000_000).alias("received")
    future = _by_topic({t.name: t.future for t in telemetry if t.future}).alias("future")
    split_by_verdict, join_inventory = _split_by_verdict(limits), _join_inventory(telemetry)
    addressed, coalescing = _to_records(topics, limits), coalesce()
    to_records = prepare(lambda rows: addressed(coalescing.after(rows)))

    @lru_cache(maxsize=1)
    def judge_with(inventory: DataFrame, decisions: Decisions) -> Step:
        lateness = _lateness(AllowedLateness.of(topics, decisions)).alias("lateness")

        def judge(decoded: DataFrame) -> DataFrame:
            judged = split_by_verdict(render_lines(decoded).select("*", received, lateness, future))
            return coalescing.before(join_inventory(judged, inventory))

        return prepare(judge)

    def enrich(decoded: DataFrame, inventory: DataFrame, decisions: Decisions = (), /) -> DataFrame:
        return to_records(coalescing.gather(judge_with(inventory, decisions)(decoded)))

    return enrich


def _by_topic(limits: dict[str, timedelta]) -> Column:
    pairs = [F.lit(x) for topic, limit in limits.items() for x in (topic, int(limit.total_seconds() * 1e9))]
    return F.element_at(F.create_map(*pairs), F.col("topic"))


def _lateness(allowed: AllowedLateness) -> Column:
    """What `allowed.at` says of a row's topic and Kafka timestamp, in ns."""
    most = _by_topic({topic: one.max for topic, one in allowed.by_topic.items()})
    if not allowed.decisions:
        return most
    begins, decided = ([F.lit(one * 1_000_000) for one in column] for column in zip(*allowed.decisions, strict=True))
    begun = F.size(F.filter(F.array(*begins), lambda begin: begin <= F.unix_millis("timestamp") * 1_000_000))
    held = F.when(F.col("topic").isin(*allowed.learned), F.get(F.array(*decided), begun - 1))
    return F.least(most, held)  # which passes over null: before the first decision, and where none holds


def _verdict(event: Column, limits: Limits) -> Column:
    """Where one event goes: `ok`, `late`, or the code for which it is rejected."""
    time, value = event["time_unix_nano"], event["value"]
    is_metric = F.col("kind") == "metric"
    judged = (
        F.when(time.isNull() | (time <= 0), "no_time")
        .when(time - F.col("received") > F.col("future"), "future")
        .when(F.col("received") - time > F.col("lateness"), "late")
        .when(is_metric & value.isNull(), "no_value")
        .when(is_metric & (F.isnan(value) | (F.abs(value) == float("inf"))), "not_finite")
        .otherwise("ok")
    )
    return F.coalesce(limits.event_verdict(event), judged)


def _split_by_verdict(limits: Limits) -> Step:
    """Split each row into one for each verdict of its events; a row that couldn't be decoded has its error as verdict.

    Nearly always all events of a row have the same verdict. If the decoder has rendered them (`json`), the range of
    their times and the lengths of their names show that, and they stay as they are; otherwise each event is judged.
    """
    in_time = (F.col("first_unix_nano") >= F.col("received") - F.col("lateness")) & (
        F.col("last_unix_nano") <= F.col("received") + F.col("future")
    )
    late = F.col("last_unix_nano") < F.col("received") - F.col("lateness")
    fit, excess = limits.rendered_fit(), limits.row_verdict()
    error = F.coalesce("error", excess)
    whole = F.when(error.isNotNull(), error).when(fit & in_time, "ok").when(fit & late, "late")
    together = F.array(F.struct(F.col("whole").alias("verdict"), "events"))
    events = F.coalesce("events", event_rows(F.from_json("json", _COLUMNS)))
    one_by_one = F.transform(
        F.array_distinct(F.transform(events, lambda event: _verdict(event, limits))),
        lambda verdict: F.struct(
            verdict.alias("verdict"), F.filter(events, lambda event: _verdict(event, limits) == verdict).alias("events")
        ),
    )
    # In one step, though that parses a batch of several verdicts more than once: Spark interprets the functions of
    # lists, and copies the whole row before and after each step that has any.
    shares = F.when(F.col("whole").isNotNull(), together).otherwise(one_by_one)
    return lambda df: (
        df.withColumn("whole", whole)
        .withColumn("shares", shares)
        .withColumn("share", F.explode_outer("shares"))
        .withColumns({"verdict": F.col("share.verdict"), "events": F.col("share.events")})
        .drop("whole", "shares", "share")
    )


def _join_inventory(telemetry: Iterable[Topic]) -> Callable[[DataFrame, DataFrame], DataFrame]:
    """Add `inventory`: of the facts that were known when the broker received the row, those of its first event's time.

    A fact ends where a newer one begins, but only for rows that came after that one: else a replay, which knows of it
    from the beginning, would give another answer.

    What the inventory doesn't say the resource's own attributes may; `known` is the inventory's alone. What is then
    known of the machine also tells whether the row is forged.
    """
    first = F.coalesce(F.array_min("events.time_unix_nano"), F.col("first_unix_nano"))

    def has_begun(fact: Column) -> Column:
        return (fact["known_from"] <= F.col("received")) & (fact["valid_from"] <= F.col("first"))

    def goes_on(fact: Column) -> Column:
        return ~F.coalesce(fact["valid_to"] <= F.col("first"), F.lit(False))

    # Most machines have one fact, and Spark interprets the functions of lists.
    only = F.get("history", F.lit(0))
    newest = F.slice(F.filter("history", has_begun), 1, 1)
    fact = F.when(F.size("history") == 1, F.when(has_begun(only) & goes_on(only), only)).otherwise(
        F.get(F.filter(newest, goes_on), F.lit(0))
    )
    own = own_facts(F.col("resource"))
    named = (F.coalesce(fact[name], own[name]).alias(name) for name in FACTS)
    others = (fact[DEPENDS_ON].alias(DEPENDS_ON), fact["valid_to"].alias("valid_to_unix_nano"))
    # Of a record that is sent again it would be that of its first arrival.
    delay = F.when(_is_event() & F.col("retried").isNull(), F.expr("(received - first) div 1000000"))
    facts = F.struct(fact.isNotNull().alias("known"), *named, *others)
    forged = is_forged(telemetry, fact)
    judged = None if forged is None else F.when(_is_event() & forged, FORGED).otherwise(F.col("verdict"))

    def join(df: DataFrame, inventory: DataFrame) -> DataFrame:
        joined = df.withColumn("first", first).join(F.broadcast(inventory), on="machine", how="left")
        checked = joined if judged is None else joined.withColumn("verdict", judged).drop(PRINCIPAL)
        return checked.withColumns({"inventory": facts, "delay_ms": delay})

    return join


def _is_event() -> Column:
    return F.col("verdict").isin("ok", "late")


def _with_templates(lines: Column, limits: Limits, is_cut: Column) -> Column:
    """Log lines with their template, which is also their series; a line of OTLP may have no body."""
    events = F.when(is_cut, F.transform(lines, limits.line)).otherwise(lines)
    templates = F.transform(events, lambda event: template(F.coalesce(event["body"], F.lit(""))))
    return F.zip_with(
        events, templates, lambda event, found: event.withField("template", found).withField("series", found)
    )


def _to_records(topics: TopicMap, limits: Limits) -> Step:
    """The records in the columns that the transactional sink takes, from rows of one verdict with their inventory."""
    is_rejected = ~_is_event()
    value = F.when(is_rejected, _rejected_json(_rejected_content())).otherwise(_events_json())
    is_log = F.coalesce(F.col("kind") == "log", F.lit(False))
    cut_lines = is_log & F.coalesce(F.exists("events", limits.is_line_cut), F.lit(False))
    lines = _with_templates(F.col("events"), limits, F.col("cut"))
    events = F.when(is_log, lines).otherwise(F.col("events"))
    addressed = {"events": events, "source": _source(), "batch_id": _batch_id()}
    head = F.to_json(
        F.struct(F.col("batch_id").alias("id"), "machine", "kind", "resource", "inventory", "source", "retried")
    ).cast("binary")  # of text, Spark would count the characters
    is_huge = F.octet_length("record") + F.coalesce(F.octet_length("machine"), F.lit(0)) > RECORD_BYTES
    judged = F.when(is_huge, TOO_LARGE).otherwise(F.col("verdict"))
    written = _addressed(topics, is_rejected, is_huge)
    return lambda df: (
        df.withColumn("cut", cut_lines | limits.is_resource_cut())
        .withColumns({**addressed, "resource": limits.resource()})
        .withColumn("head", head)  # a step of its own: Spark would render it twice, to know its length
        .withColumn("record", value)
        .withColumn("verdict", judged)
        .select(*written)
    )


def _addressed(topics: TopicMap, is_rejected: Column, is_huge: Column) -> tuple[Column, ...]:
    """The columns of connectors.sinks.kafka, from those of a row and its `record`."""
    source = F.concat_ws("/", "topic", "partition", F.concat_ws("-", "offset", "last_offset"))
    target = (
        F.when(F.col("verdict") == "ok", topics["events"].name)
        .when(is_rejected, topics["events.rejected"].name)
        .otherwise(topics["events.late"].name)
    )
    # A member of a workload comes and goes: no inventory knows it, and what it is it says itself.
    is_named = F.col("inventory.known") | F.col("inventory.workload").isNotNull()
    is_unknown = ~is_named & (F.col("kind") != "control")
    schema, version = version_header("events")
    return (
        target.alias("topic"),
        _partition(topics, ~is_rejected & (F.col("kind") == "control")).alias("partition"),
        # The members of a workload are in one partition: they are judged together.
        F.when(is_rejected, source).otherwise(F.coalesce("inventory.workload", "machine")).alias("key"),
        F.when(is_huge, _rejected_json({"part": F.col("batch")})).otherwise(F.col("record")).alias("value"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
        F.array(_header("kappa.source", source), _header(schema, F.lit(version))).alias("headers"),
        # A retried dead letter is older than what its partition is at.
        F.when(F.col("retried").isNull(), F.col("topic")).alias("source_topic"),
        F.col("partition").alias("source_partition"),
        F.unix_millis("timestamp").alias("source_oldest_ms"),
        F.unix_millis("newest").alias("source_newest_ms"),
        F.col("delay_ms").alias("source_delay_ms"),
        F.when(is_rejected, F.col("verdict")).when(F.col("cut"), CUT).when(is_unknown, UNKNOWN_MACHINE).alias("note"),
    )


def _source() -> Column:
    timestamp = F.unix_millis("timestamp").alias("timestamp_unix_milli")
    return F.struct("topic", "partition", "offset", "last_offset", timestamp)


def _batch_id() -> Column:
    return F.concat_ws("-", "topic", "partition", "offset", F.coalesce("batch", F.lit(0)))


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _events_json() -> Column:
    """The JSON of a record of the schema `events`; events that the decoder has rendered are inserted as they are."""
    head = F.col("head")
    events = F.when(F.col("events").isNull(), F.col("json")).otherwise(F.to_json(event_columns(F.col("events"))))
    parts = (F.substring(head, F.lit(1), F.octet_length(head) - 1), F.lit(',"events":'), events, F.lit("}"))
    return F.concat(*(part.cast("binary") for part in parts)).cast("string")


def _rejected_json(content: dict[str, Column]) -> Column:
    """The JSON of a dead letter (schema `rejected`); `content` are the columns that hold the original."""
    code = F.col("verdict")
    reasons = F.create_map(*(F.lit(text) for pair in _REASONS.items() for text in pair))
    reason = F.coalesce(F.try_element_at(reasons, code), F.concat(F.lit("could not be decoded: "), code))
    head = {"id": F.concat_ws("-", "batch_id", code), "stage": F.lit("enrichment"), "code": code, "reason": reason}
    named = [column.alias(name) for name, column in (head | content).items()]
    names = [F.substring(name, 1, REJECTED_NAME).alias(name) for name in ("key", "machine")]
    rendered = F.json_array_length(F.get_json_object("json", "$.time_unix_nano"))
    count = F.coalesce(F.size("events"), "count", rendered, F.lit(1)).cast("long").alias("events")
    return F.to_json(F.struct(*named, "source", *names, count))


def _partition(topics: TopicMap, is_control: Column) -> Column:
    """A control event goes to the partition that has the events of its machines; other records go by their key.

    A rescaled generation has several for each of the topic of control events: each of them gets the event.
    """
    controls, events = topics["detector.control"].partitions, topics["events"].partitions
    if controls == events:
        return F.when(is_control, F.col("partition"))
    every = F.sequence(F.col("partition"), F.lit(events - 1), F.lit(controls))
    return F.explode(F.when(is_control, every).otherwise(F.array(F.lit(None).cast("int"))))


def _rejected_content() -> dict[str, Column]:
    """What a dead letter keeps: the original bytes, or the rejected events if the record could be decoded."""
    undecoded = F.col("error").isNotNull()
    return {
        "value": F.when(undecoded, F.substring("value", 1, REJECTED_BYTES)),
        "part": F.when(undecoded, F.col("batch")),
        "batch": F.when(~undecoded, _events_json()),
    }
