"""The limits of identity as column expressions: which rows and events exceed one, and what is cut.

A name by which machines, series or units are told apart is never cut: two of them could become one. What exceeds a
limit is rejected. Texts that nobody is told apart by, log lines and the values of attributes, are cut. Each decision
depends on the record and the settings alone, so that a replay decides the same.

Data points that a decoder has rendered aren't parsed for that: it says how long the longest series and unit are. All
attributes of a data point are part of its series, so the limit of the series bounds them too.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from jobs.enrichment.settings import EnrichmentSettings

MACHINE_TOO_LONG = "machine_too_long"
SERIES_TOO_LONG = "series_too_long"
UNIT_TOO_LONG = "unit_too_long"
ATTRIBUTE_TOO_LONG = "attribute_too_long"
TOO_MANY_ATTRIBUTES = "too_many_attributes"

REASONS = {
    MACHINE_TOO_LONG: "the machine's name is longer than KAPPA_ENRICHMENT_MACHINE_BYTES",
    SERIES_TOO_LONG: "the series, its name with all attributes, is longer than KAPPA_ENRICHMENT_SERIES_BYTES",
    UNIT_TOO_LONG: "the unit is longer than KAPPA_ENRICHMENT_UNIT_BYTES",
    ATTRIBUTE_TOO_LONG: "the key of an attribute is longer than KAPPA_ENRICHMENT_ATTRIBUTE_KEY_BYTES",
    TOO_MANY_ATTRIBUTES: "there are more attributes than KAPPA_ENRICHMENT_ATTRIBUTES",
}


class Limits:
    """The expressions of one set of limits."""

    def __init__(self, settings: EnrichmentSettings) -> None:
        self._limits = settings

    def row_verdict(self) -> Column:
        """The code for which a whole row is rejected, null for none: its machine or its resource exceeds a limit."""
        too_long = F.octet_length("machine") > self._limits.machine_bytes
        return F.when(too_long, MACHINE_TOO_LONG).otherwise(self._attributes_verdict(F.col("resource")))

    def rendered_fit(self) -> Column:
        """Whether all rendered data points of a row keep the limits; null where the decoder doesn't say."""
        return (F.col("series_bytes") <= self._limits.series_bytes) & (F.col("unit_bytes") <= self._limits.unit_bytes)

    def event_verdict(self, event: Column) -> Column:
        """The code for which one event is rejected, null for none. A log line's series is its template, of 512."""
        return (
            F.when(F.octet_length(event["series"]) > self._limits.series_bytes, SERIES_TOO_LONG)
            .when(F.octet_length(event["unit"]) > self._limits.unit_bytes, UNIT_TOO_LONG)
            .when(F.col("kind") == "log", self._attributes_verdict(event["attributes"]))
        )

    def _attributes_verdict(self, attributes: Column) -> Column:
        keys = F.map_keys(attributes)
        return F.when(F.size(attributes) > self._limits.attributes, TOO_MANY_ATTRIBUTES).when(
            F.exists(keys, lambda key: F.octet_length(key) > self._limits.attribute_key_bytes), ATTRIBUTE_TOO_LONG
        )

    def is_resource_cut(self) -> Column:
        """Whether a value of the resource is to be cut."""
        return self._has_long_value(F.col("resource"))

    def resource(self) -> Column:
        """The resource with its values cut."""
        return F.when(self.is_resource_cut(), self._cut(F.col("resource"))).otherwise(F.col("resource"))

    def is_line_cut(self, line: Column) -> Column:
        """Whether a log line or a value of its attributes is to be cut."""
        long_body = F.length(line["body"]) > self._limits.body_characters
        return F.coalesce(
            long_body | (F.length(line["severity_text"]) > self._limits.attribute_characters), F.lit(False)
        ) | (self._has_long_value(line["attributes"]))

    def line(self, line: Column) -> Column:
        """A log line with its body and the values of its attributes cut."""
        cut = {
            "body": F.substring(line["body"], 1, self._limits.body_characters),
            "severity_text": F.substring(line["severity_text"], 1, self._limits.attribute_characters),
            "attributes": self._cut(line["attributes"]),
        }
        for name, column in cut.items():
            line = line.withField(name, column)
        return line

    def _has_long_value(self, attributes: Column) -> Column:
        values = F.map_values(attributes)
        is_long = F.exists(
            values, lambda value: F.coalesce(F.length(value), F.lit(0)) > self._limits.attribute_characters
        )
        return F.coalesce(is_long, F.lit(False))

    def _cut(self, attributes: Column) -> Column:
        return F.transform_values(attributes, lambda _, value: F.substring(value, 1, self._limits.attribute_characters))
