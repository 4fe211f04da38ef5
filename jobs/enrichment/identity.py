"""Whether a record may be about its machine, by the `identity` that the map declares of its topic.

Kafka doesn't tell a reader who wrote a record. But a topic with one writer tells it, where the brokers let nobody else
write (`kappa acl`); or a gateway, which is that writer, says it in a header.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infra.contract.topics import Topic

FORGED = "forged"
REASON = "the record is about a machine that its writer may not speak for"
PRINCIPAL = "principal"  # the column with what a header says
PRINCIPAL_BYTES = 1_000  # of a longer one nothing is known


def has_headers(telemetry: Iterable[Topic]) -> bool:
    """Whether a header of any of these topics says who wrote a record."""
    return any(topic.identity and topic.identity.principal_header for topic in telemetry)


def with_principal(rows: DataFrame, telemetry: Iterable[Topic]) -> DataFrame:
    """The rows with their header's principal instead of their headers, if any topic has one."""
    named = _headers(telemetry)
    if not named:
        return rows.drop("headers")
    if "headers" not in rows.columns:
        return rows.withColumn(PRINCIPAL, F.lit(None).cast("string"))
    found = F.get(_principals(named), F.lit(0))["value"]
    return rows.withColumn(PRINCIPAL, found.cast("string")).drop("headers")


def with_principals_only(rows: DataFrame, telemetry: Iterable[Topic]) -> DataFrame:
    """The rows without the headers that `with_principal` doesn't need: whatever is made of a row has a copy of them."""
    named = _headers(telemetry)
    return rows.withColumn(
        "headers", _principals(named) if named else F.lit(None).cast(rows.schema["headers"].dataType)
    )


def _headers(telemetry: Iterable[Topic]) -> dict[str, str]:
    """The header that says who wrote a record, by the topic's name."""
    return {
        topic.name: topic.identity.principal_header
        for topic in telemetry
        if topic.identity and topic.identity.principal_header
    }


def _principals(named: dict[str, str]) -> Column:
    wanted = _by_topic(named)
    return F.filter(
        "headers",
        lambda header: (header["key"] == wanted) & (F.octet_length(header["value"]) <= PRINCIPAL_BYTES),
    )


def is_forged(telemetry: Iterable[Topic], fact: Column) -> Column | None:
    """Whether a row is about a machine that isn't its principal's; None if no topic declares that.

    `fact` is what the inventory alone says of the machine: what a record says of its own tenant proves nothing.
    """
    declared = [topic for topic in telemetry if topic.identity]
    if not declared:
        return None
    principal = _by_topic({t.name: t.written_by[0] for t in declared if t.identity and not t.identity.principal_header})
    if has_headers(declared):
        principal = F.coalesce(principal, F.col(PRINCIPAL))
    by_name = F.col("topic").isin([t.name for t in declared if t.identity and t.identity.machines == "prefix"])
    machine = F.col("machine")
    is_named = (machine == principal) | machine.startswith(F.concat(principal, F.lit("-")))
    is_named = is_named | machine.startswith(F.concat(principal, F.lit("/")))
    belongs = F.when(by_name, is_named).otherwise(fact["tenant"] == principal)
    return F.col("topic").isin([topic.name for topic in declared]) & ~F.coalesce(belongs, F.lit(False))


def _by_topic(values: dict[str, str]) -> Column:
    pairs = [F.lit(text) for pair in values.items() for text in pair]
    return F.try_element_at(F.create_map(*pairs), F.col("topic")) if pairs else F.lit(None).cast("string")
