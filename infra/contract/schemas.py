"""The schemas of the chain's records: Spark schemas, exported as JSON Schema by `kappa topics schema`.

Times are integers, nanoseconds since the Unix epoch, and end in `_unix_nano` as in OTLP. A field that is null is
absent from the JSON. A record of a sharded topic that has `watermark_unix_nano` is a *watermark record*: it carries no
data and promises that no event earlier than this time follows in its partition.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from infra.contract.inventory import FACTS


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _columns(row: StructType) -> StructType:
    """A table as columns: a list for each field of a row, with null where a row has no value."""
    return StructType([StructField(field.name, ArrayType(field.dataType)) for field in row.fields])


STRINGS = MapType(StringType(), StringType())

# A machine's facts as a record has them: `known` says whether the inventory had any.
INVENTORY_FACTS = _struct(
    known=BooleanType(),
    **dict.fromkeys(FACTS, StringType()),
    depends_on=ArrayType(StringType()),  # names of machines, workloads, or roles of its own tenant
    valid_to_unix_nano=LongType(),  # when the machine is retired, if the inventory says so
)

SOURCE = _struct(
    topic=StringType(),
    partition=IntegerType(),
    offset=LongType(),
    last_offset=LongType(),  # of several coalesced records: the last one's; `offset` is the first one's
    timestamp_unix_milli=LongType(),  # Kafka timestamp of the (first) record
)

HISTOGRAM = _struct(
    count=LongType(),
    sum=DoubleType(),
    min=DoubleType(),
    max=DoubleType(),
    bounds=ArrayType(DoubleType()),  # upper bounds of all buckets but the last, ascending
    counts=ArrayType(LongType()),  # one more than bounds
    quantiles=STRINGS,  # of a summary: quantile -> value
)

# A data point or a log line. Fields that may change with each scrape come before `series`, constant ones after it.
EVENT = _struct(
    time_unix_nano=LongType(),
    value=DoubleType(),
    histogram=HISTOGRAM,
    severity_number=IntegerType(),  # OTLP's scale: 9 INFO, 13 WARN, 17 ERROR
    severity_text=StringType(),
    body=StringType(),  # of a control event: JSON of CONTROL
    template=StringType(),
    series=StringType(),  # metrics: name{key=value,...} with sorted keys; logs: the template
    name=StringType(),
    unit=StringType(),
    type=StringType(),  # gauge | sum | histogram | exponential_histogram | summary | log | control
    temporality=StringType(),  # cumulative | delta
    monotonic=BooleanType(),
    attributes=STRINGS,
)

# The fields from `series` on, which stay the same from scrape to scrape.
LABELS = tuple(EVENT.names[EVENT.names.index("series") :])


def _event_columns() -> StructType:
    """EVENT as a table. With `labels`, those of LABELS have each distinct row once; it is the row of each event."""
    fields = {field.name: field.dataType for field in _columns(EVENT).fields}
    labels = {name: fields.pop(name) for name in LABELS}
    return _struct(**fields, labels=ArrayType(IntegerType()), **labels)


EVENTS = _struct(
    id=StringType(),
    machine=StringType(),  # of a control event: may be a pattern
    kind=StringType(),  # metric | log | control
    resource=STRINGS,
    inventory=INVENTORY_FACTS,
    source=SOURCE,
    retried=BooleanType(),  # a dead letter that was retried: it may be older than the watermarks before it
    events=_event_columns(),  # the last field: the constant columns are the end of the bytes, which compress well
    watermark_unix_nano=LongType(),
)

REJECTED = _struct(
    id=StringType(),
    stage=StringType(),  # the job that could not use the record; absent in 0.1.0: enrichment or indexer
    code=StringType(),
    reason=StringType(),
    source=SOURCE,
    key=BinaryType(),
    value=BinaryType(),  # the original bytes, base64 in JSON; absent if it could be decoded, or has very many parts
    part=IntegerType(),  # which of the record's batches (an OTLP resource, say); absent: all of it
    batch=StringType(),  # if the record could be decoded: the rejected events, as JSON of the schema `events`
    machine=StringType(),
    events=LongType(),  # number of data points or log lines in it; 1 if unknown
)

# By what a window is measured: each kind has some of these.
WINDOW = _struct(
    kind=StringType(),  # a module of jobs/statistics/windows
    size_seconds=DoubleType(),
    slide_seconds=DoubleType(),
    gap_seconds=DoubleType(),
    timeout_seconds=DoubleType(),
    values=LongType(),
    slide_values=LongType(),
    start_unix_nano=LongType(),
    end_unix_nano=LongType(),  # exclusive
)

# A row of the table `statistics` in a record of the topic `statistics`.
STATISTIC = _struct(
    series=StringType(),
    name=StringType(),
    kind=StringType(),  # metric | log
    unit=StringType(),  # of a rate: per second
    rate=BooleanType(),  # true for a counter: the statistics are of its rate a second, `sum` is its growth
    attributes=STRINGS,
    count=LongType(),  # number of data points or log lines
    observations=LongType(),  # of a histogram: its own count; sum, mean and percentiles are of these
    sum=DoubleType(),
    mean=DoubleType(),
    variance=DoubleType(),  # of the sample (n - 1); 0 for one value
    min=DoubleType(),
    max=DoubleType(),
    first=DoubleType(),
    last=DoubleType(),
    p50=DoubleType(),
    p95=DoubleType(),
    p99=DoubleType(),
    missing=DoubleType(),  # share of the points that its usual interval promises and that did not come
    severity_number=IntegerType(),  # of log lines: the highest
    example=StringType(),  # of a log template: the first line of the newest pane in which it came, 256 characters of it
)

# What an operator tells the detector. `machine` and `series` are shell globs where many may be meant.
CONTROL = _struct(
    # feedback: a novelty is none | reset: learn anew | suppress | allow: the rule is over | retire: the machine goes.
    action=StringType(),
    machine=StringType(),
    series=StringType(),
    novelty=StringType(),  # feedback: its id, and what it said
    verdict=StringType(),
    kind=StringType(),
    observed=DoubleType(),
    expected=DoubleType(),
    novelty_record=StringType(),  # feedback: its newest record, as JSON
    rule=StringType(),  # suppress, allow: the rule's id
    direction=StringType(),  # above | below
    size=DoubleType(),  # the deviation at most that is suppressed, in the series' unit
    by=StringType(),  # who says it
    valid_to_unix_nano=LongType(),  # retire: until when the machine is there
)

STATISTICS = _struct(
    id=StringType(),
    machine=StringType(),
    inventory=INVENTORY_FACTS,
    window=WINDOW,
    part=IntegerType(),  # of a window that is too large for one record: which of its records this is, from 1 on
    parts=IntegerType(),  # and how many there are; each has some of the series
    provisional=BooleanType(),  # true of an early result, in statistics.early: the final record of this id replaces it
    until_unix_nano=LongType(),  # of an early result: event time that it covers
    statistics=_columns(STATISTIC),
    control=CONTROL,  # a control event that came by `events`; beside it only id, machine and time
    time_unix_nano=LongType(),
    watermark_unix_nano=LongType(),
)

# A series that was surprising in the window in which a novelty started.
CONTRIBUTOR = _struct(
    series=StringType(),
    unit=StringType(),
    score=DoubleType(),
    share=DoubleType(),  # of the sum of the scores of all contributing series; what of a machine's score is its own
    observed=DoubleType(),
    expected=DoubleType(),
    expected_low=DoubleType(),
    expected_high=DoubleType(),
)

# How many machines its shard of the fleet has, and how many of them share the machine's place.
PEERS = _struct(
    machines=LongType(),
    hypervisor=LongType(),  # and it itself
    site=LongType(),
    tenant=LongType(),
    role=LongType(),
)

NOVELTIES = _struct(
    id=StringType(),  # of the novelty: its start, updates and end share it
    phase=StringType(),  # start | update | end
    verdict=StringType(),  # anomaly | state_change | new_entity | silence | gone
    seen_before=BooleanType(),  # true of a new machine whose name was there before, and then it was gone
    machine=StringType(),
    inventory=INVENTORY_FACTS,
    peers=PEERS,
    depends_on=ArrayType(StringType()),  # by the inventory, and the peers that its clients' metrics name
    series=StringType(),
    name=StringType(),
    kind=StringType(),  # metric | log | machine
    time_unix_nano=LongType(),  # end of the window that caused this record
    since_unix_nano=LongType(),  # end of the first window of this novelty
    # What had the greatest score: level | step | season | sustained_deviation | joint | presence | first_seen
    # | retired (by the inventory).
    statistic=StringType(),
    window_seconds=DoubleType(),  # the length of time whose mean or count was judged
    contributing=LongType(),  # how many of the machine's series were surprising at the start
    contributors=ArrayType(CONTRIBUTOR),  # the strongest of them, strongest first; of a machine those that deviate most
    score=DoubleType(),  # -ln of the probability of an outcome less likely than the observed one
    probability=DoubleType(),
    observed=DoubleType(),
    expected=DoubleType(),
    expected_low=DoubleType(),
    expected_high=DoubleType(),
    unit=StringType(),
    example=StringType(),  # of a log template: a line of the window that was judged
    text=StringType(),  # a sentence for a person
    feedback=StringType(),  # what an operator says of it: not-anomalous
    watermark_unix_nano=LongType(),
)

# A piece of evidence for a cause, or against it.
REASON = _struct(
    evidence=StringType(),  # deviation | dependants | delay | dependencies | unrelated; of a group: share | rarity
    weight=DoubleType(),  # nats
    text=StringType(),
)

CAUSE = _struct(
    kind=StringType(),  # machine | hypervisor | site | tenant | role
    name=StringType(),
    likelihood=DoubleType(),  # nats: the sum of the weights in `because`
    affected=LongType(),  # of a machine: itself and those affected that depend on it
    machines=LongType(),  # that it has, as far as the affected shards of the fleet know
    because=ArrayType(REASON),
)

MEMBER = _struct(
    novelty=StringType(),
    machine=StringType(),
    verdict=StringType(),
    series=StringType(),
    since_unix_nano=LongType(),
    score=DoubleType(),
)

INCIDENTS = _struct(
    id=StringType(),  # of the incident: its start, updates and end share it
    phase=StringType(),  # start | update | end
    time_unix_nano=LongType(),
    since_unix_nano=LongType(),
    machines=LongType(),
    novelties=LongType(),
    verdicts=ArrayType(StringType()),
    score=DoubleType(),  # of its strongest novelty
    causes=ArrayType(CAUSE),  # the likeliest first
    members=ArrayType(MEMBER),  # each machine's first novelty, those affected first come first
    merged_into=StringType(),  # of an end: the incident that it turned out to be a part of
    text=StringType(),
)

# An event that a rule's pattern is made of.
OBSERVED = _struct(
    series=StringType(),
    time_unix_nano=LongType(),
    value=DoubleType(),
    body=StringType(),  # of a log line, cut to 1000 characters
)

ALERTS = _struct(
    id=StringType(),  # of the alert: its start and end share it
    phase=StringType(),  # start | end: of a pattern that lasts
    rule=StringType(),  # its id
    name=StringType(),  # the rule's, for a person
    severity=StringType(),  # info | warning | critical
    machine=StringType(),
    inventory=INVENTORY_FACTS,
    time_unix_nano=LongType(),  # of the event that completes the pattern, or when an absence has lasted too long
    since_unix_nano=LongType(),  # of the first event of the pattern; of an absence, of the last event before it
    observed=ArrayType(OBSERVED),
    text=StringType(),  # a sentence for a person
    watermark_unix_nano=LongType(),
)

# How far a notification is on its way to one channel: a record whenever that changes, the newest one holds.
NOTIFICATIONS = _struct(
    id=StringType(),  # of the notification, in every channel and at every attempt: receivers deduplicate by it
    channel=StringType(),
    state=StringType(),  # planned | sending | failed | sent | dead
    attempt=IntegerType(),  # how many attempts have begun
    reason=StringType(),  # why the last one failed
    thread=StringType(),  # of all notifications of one incident, alert or novelty; the id of its start
    phase=StringType(),  # start | update | end
    severity=StringType(),  # info | warning | critical
    time_unix_nano=LongType(),  # event time of the record that it is about
    hold_until_unix_nano=LongType(),  # not to be sent before, because of quiet hours
    source=SOURCE,  # of the record that it is about
    subject=StringType(),  # the title of the first one of its thread
    # What is sent; only until it is sent or dead.
    title=StringType(),
    text=StringType(),
    link=StringType(),
    record=StringType(),  # the record that it is about, as JSON
)

INVENTORY = _struct(
    machine=StringType(),
    **dict.fromkeys(FACTS, StringType()),
    depends_on=ArrayType(StringType()),  # what the machine needs: names of machines, workloads, or roles of its tenant
    valid_from_unix_nano=LongType(),  # absent: from the beginning
    valid_to_unix_nano=LongType(),  # absent: until a later record's valid_from
)

# How late events may be from a Kafka timestamp on.
LATENESS = _struct(
    from_unix_milli=LongType(),  # the Kafka timestamp; of two records for one, the later holds
    lateness_milli=LongType(),  # by how much an event may be older than its record's Kafka timestamp
)

SCHEMAS: dict[str, StructType] = {
    "events": EVENTS,
    "rejected": REJECTED,
    "statistics": STATISTICS,
    "control": CONTROL,
    "novelties": NOVELTIES,
    "incidents": INCIDENTS,
    "alerts": ALERTS,
    "notifications": NOTIFICATIONS,
    "inventory": INVENTORY,
    "lateness": LATENESS,
}

# The output of a decoder (connectors/decoders): one row for each batch of one machine in a Kafka record, beside Kafka's
# own columns (key, value, topic, partition, offset, timestamp). Either `error` is a code and nothing was decoded, or
# the events are in `events`, or in `json`, rendered as in the topic `events`.
DECODED = _struct(
    batch=IntegerType(),  # number of the batch within its Kafka record
    machine=StringType(),
    kind=StringType(),
    resource=STRINGS,
    events=ArrayType(EVENT),
    json=StringType(),  # the column `events` of EVENTS as JSON
    first_unix_nano=LongType(),  # of `json`: earliest and latest time, if every event has a time and a finite value
    last_unix_nano=LongType(),
    series_bytes=IntegerType(),  # of `json`: the length of the longest series in UTF-8, so that nobody must parse it
    unit_bytes=IntegerType(),
    error=StringType(),
    count=LongType(),  # with an error: the number of events lost by it, if known
    retried=BooleanType(),
)
