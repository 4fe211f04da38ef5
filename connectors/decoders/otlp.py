"""OTLP's attributes and series as column expressions."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from connectors.decoders import columns


def as_map(pairs: Column) -> Column:
    """Entries as a map; of a key that stands twice, the first counts."""
    keys = pairs["key"]
    firsts = F.filter(pairs, lambda pair, index: F.array_position(keys, pair["key"]) == index + 1)
    is_plain = F.size(F.array_distinct(keys)) == F.size(keys)
    return F.map_from_entries(F.when(is_plain, pairs).otherwise(firsts))


def attribute(resource: Column, *keys: str) -> Column:
    """The first of these attributes that has a value; null if none has."""
    return F.coalesce(*[columns.nonempty(F.element_at(resource, key)) for key in keys])


def series(name: Column, pairs: Column) -> Column:
    """`name{key=value,...}`, sorted by key; the name alone if there are no entries."""
    texts = F.transform(F.sort_array(pairs), lambda pair: F.concat_ws("=", pair["key"], pair["value"]))
    # concat_ws, since concat works out its type anew for each row inside a lambda.
    labelled = F.concat_ws("", name, F.lit("{"), F.array_join(texts, ","), F.lit("}"))
    return F.when(F.size(pairs) == 0, name).otherwise(labelled)
