"""Decoders in the JVM: a class of connectors/jvm makes of a record's bytes a list of rows, of at least one.

They decode the formats of most records: to take the bytes to Python and the events back costs more than the decoding.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from connectors.decoders.base import Decoder
from connectors.decoders.columns import LARGEST_BYTES, TOO_LARGE, value_beside
from infra.contract.schemas import DECODED

# Columns of DECODED, by name, that are computed from a row of the Java class.
Derive = Callable[[Column], dict[str, Column]]


def decoder(name: str, java: str, row: StructType, derive: Derive) -> Decoder:
    """The decoder of the wire format `name` by the class `kappa.<java>`, whose rows have the fields of `row`.

    Fields that DECODED has, too, are taken as they are; `derive` gives other fields of it from such a row.
    """
    return Decoder(name, lambda df: _decode(df, java, row, derive))


def _decode(df: DataFrame, java: str, row: StructType, derive: Derive) -> DataFrame:
    name = f"kappa_{java}"
    if not df.sparkSession.catalog.functionExists(name):
        df.sparkSession.udf.registerJavaFunction(name, f"kappa.{java}", ArrayType(row))
    is_too_large = F.octet_length("value") > LARGEST_BYTES
    decoded = F.call_function(name, F.when(~is_too_large, F.col("value")))
    found = df.withColumn("rows", decoded).withColumn("value", value_beside(F.size("rows")))
    # Outer, though there is always a row: otherwise Spark would compute the rows twice, to filter out empty lists.
    rows = found.select(*df.columns, F.explode_outer("rows").alias("row"))
    made = F.col("row")
    error = F.when(is_too_large, TOO_LARGE).otherwise(made["error"])
    known = {field: made[field] for field in row.names} | derive(made) | {"error": error}
    fields = [known.get(field, F.lit(None)).cast(DECODED[field].dataType).alias(field) for field in DECODED.names]
    # Kafka's value stays only where nothing could be decoded, as with the decoders in Python.
    value = F.when(error.isNotNull(), F.col("value")).alias("value")
    kafka = [value if field == "value" else F.col(field) for field in df.columns]
    return rows.select(*kafka, *fields)
