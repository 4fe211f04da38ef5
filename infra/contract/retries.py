"""The redrive of dead letters: the topic in which they are sent again, and the headers that say what each was.

`ops/dead_letters.py` writes it, enrichment reads it (`jobs/enrichment/retry.py`).
"""

TOPIC = "events.retry"
SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET = (f"kappa.retry.{name}" for name in ("topic", "partition", "offset"))
PART = "kappa.retry.part"  # the number of the one batch of the record that was rejected; the others were accepted
EVENTS_ONLY = "kappa.retry.events"  # the value is not the original bytes but the rejected events
