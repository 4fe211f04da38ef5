"""An operator's overrides for the detector, one control event a record: JSON of `infra.contract.schemas.CONTROL`.

`kappa detector` writes it, for one machine into the partition of its events, for many into every partition. Its event
time is the broker's, so it is never late, and takes effect at the same window in each replay.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from connectors.decoders import columns
from connectors.decoders.base import Decoder
from infra.contract.schemas import CONTROL

# What version 0.1.0 called another name is read, too: a replay takes what operators said in the last ten years.
_FORMER = {"novelty_record": "told"}
_READ = StructType([*CONTROL.fields, *(StructField(name, StringType()) for name in _FORMER.values())])
_NEEDED = {  # by action, beside a machine
    "feedback": "novelty",
    "reset": "series",
    "suppress": "rule",
    "allow": "rule",
    "retire": "valid_to_unix_nano",
}
# What the detector takes (jobs/detector/intake.py), which checks the rest: here it is refused with its own bytes.
_NAMES = ("machine", "novelty", "verdict", "kind", "rule", "by")
_WITHOUT_VALUE = ("new_entity", "gone")  # verdicts
_NAME_CHARACTERS = 1_000
_NUMBERS = ("observed", "expected", "size")
_LARGEST = 1e300
_SERIES_CHARACTERS = 65_536  # of the one series that feedback is about; elsewhere it is a glob
_NOVELTY = "id STRING, verdict STRING, machine STRING, kind STRING, text STRING, time_unix_nano BIGINT"


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_control (no known action, or not what it needs), no_machine."""
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), _READ.simpleString()))
    control = _as_of_today(F.col("parsed")["value"])
    needed = [F.when(control["action"] == action, control[field].cast("string")) for action, field in _NEEDED.items()]
    incomplete = F.when(F.coalesce(*needed).isNull() | ~_is_plausible(control), "not_control")
    event = columns.event(
        time_unix_nano=F.unix_millis("timestamp") * 1_000_000, type=F.lit("control"), body=F.to_json(control)
    )
    return columns.batches(
        parsed,
        machine=columns.nonempty(control["machine"]),
        kind=F.lit("control"),
        events=F.array(event),
        error=F.coalesce(columns.parse_error(F.col("parsed"), F.col("value"), "not_control"), incomplete),
    )


def _is_plausible(control: Column) -> Column:
    """Whether texts, numbers and the JSON inside are such as the detector takes."""
    verdict, is_feedback = control["verdict"], control["action"] == "feedback"
    series = F.length(control["series"])
    of_value = ~verdict.isin("silence", *_WITHOUT_VALUE)
    is_of_series = of_value & (control["kind"] != "machine")
    lacks = (
        verdict.isNull()
        | (~verdict.isin(*_WITHOUT_VALUE) & control["observed"].isNull())
        | (of_value & control["kind"].isNull())
        | (is_of_series & (control["series"].isNull() | control["expected"].isNull()))
        | (((verdict == "silence") | (of_value & (control["kind"] == "machine"))) & (control["observed"] < 0))
    )
    record = F.from_json(control["novelty_record"], _NOVELTY)
    odd_record = F.try_parse_json(control["novelty_record"]).isNull() | reduce(
        or_, (record[field.split()[0]].isNull() for field in _NOVELTY.split(", "))
    )
    too_long = [F.length(control[name]) > _NAME_CHARACTERS for name in _NAMES]
    empty = [F.length(control[name].cast("string")) == 0 for name in (*_NEEDED.values(), "verdict", "kind")]
    too_large = [F.isnan(control[name]) | (F.abs(control[name]) > _LARGEST) for name in _NUMBERS]
    faults = [
        *too_long,
        *empty,
        *too_large,
        series > F.when(is_feedback, _SERIES_CHARACTERS).otherwise(_NAME_CHARACTERS),
        is_feedback & lacks,
        is_feedback & control["novelty_record"].isNotNull() & odd_record,
        (control["action"] == "suppress") & (control["size"] <= 0),
        ~control["direction"].isin("above", "below"),
    ]
    return ~reduce(or_, (F.coalesce(fault, F.lit(False)) for fault in faults))


def _as_of_today(control: Column) -> Column:
    """A control event with the names that its fields have now."""
    fields = {name: control[name] for name in CONTROL.names}
    former = {name: F.coalesce(control[name], control[then]) for name, then in _FORMER.items()}
    return F.struct(*(field.alias(name) for name, field in (fields | former).items()))


DECODER = Decoder("control_json", decode)
