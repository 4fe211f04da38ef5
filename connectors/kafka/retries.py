"""Which of Kafka's failures pass by themselves, and how a call that met one is repeated."""

from confluent_kafka import KafkaError, KafkaException
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

# What passes by itself, of the errors that don't say so.
_TRANSIENT = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,  # of a topic that was just made, or a broker that was started again
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}


def is_transient(failure: BaseException) -> bool:
    """Whether the same call may succeed later; a transaction that must be aborted, or a fenced client, never does."""
    if not isinstance(failure, KafkaException):
        return False
    error = failure.args[0]
    if error.fatal() or error.txn_requires_abort():
        return False
    return bool(error.retriable() or error.code() in _TRANSIENT)


def retrying(seconds: float, pause_seconds: float = 0.1) -> Retrying:
    """Repeats a call while its failure is transient, for so many seconds; then raises it. With 0 it is tried once."""
    return Retrying(
        retry=retry_if_exception(is_transient),
        wait=wait_fixed(pause_seconds),
        stop=stop_after_delay(seconds),
        reraise=True,
    )
