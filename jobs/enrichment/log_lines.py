"""Log lines rendered to JSON with their templates in one step, as decoders in the JVM leave data points.

As expressions over lists, which Spark interprets, a line cost forty times a data point. What the step doesn't take --
lines of which one exceeds a limit or has no time -- stays as events, for the expressions of `transform` to judge.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.java_class import java_class
from connectors.prepared import Step
from infra.contract.schemas import EVENT
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.templates import BODY_LENGTH, MASK, MASKS, TEMPLATE_LENGTH


def rendering(settings: EnrichmentSettings) -> Step:
    """The step, from decoded rows to decoded rows: LogColumns.java says which lines it renders."""
    (tokens, _), (lists, _) = MASKS

    def render(decoded: DataFrame) -> DataFrame:
        spark = decoded.sparkSession
        template = java_class(spark, "kappa.LogTemplate")(tokens, lists, MASK, BODY_LENGTH, TEMPLATE_LENGTH)
        columns = java_class(spark, "kappa.LogColumns")(list(EVENT.names), template, settings.model_dump())
        return _replaced(DataFrame(columns.rendered(decoded._jdf), spark))

    return render


def _replaced(rows: DataFrame) -> DataFrame:
    """With the rendered lines in place of their events."""
    lines = F.col("lines")
    made = {name: F.coalesce(lines[name], name) for name in ("json", "first_unix_nano", "last_unix_nano")}
    # No line has a unit, nor a series but its template, which is short.
    lengths = {name: F.when(lines.isNotNull(), 0).otherwise(F.col(name)) for name in ("series_bytes", "unit_bytes")}
    events = {"events": F.when(lines.isNull(), F.col("events"))}
    return rows.withColumns({**made, **lengths, **events}).drop("lines")
