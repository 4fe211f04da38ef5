import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.retries import retrying


def failing(*errors):
    """A call that fails so often, then gives 42."""
    left = list(errors)

    def call():
        if left:
            raise KafkaException(left.pop(0))
        return 42

    return call


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS])
def test_what_passes_is_tried_again(code):
    assert retrying(10, pause_seconds=0)(failing(KafkaError(code), KafkaError(code))) == 42


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED),
        KafkaError(KafkaError._FENCED, "fenced", fatal=True),
        KafkaError(KafkaError._TIMED_OUT, "a record was not delivered", txn_requires_abort=True),
    ],
)
def test_what_does_not_pass_is_raised_at_once(error):
    with pytest.raises(KafkaException) as raised:
        retrying(10)(failing(error))
    assert raised.value.args[0] is error


def test_what_does_not_pass_in_time_is_raised():
    with pytest.raises(KafkaException):
        retrying(0.3)(failing(*[KafkaError(KafkaError._TIMED_OUT)] * 1_000))


def test_without_time_a_call_is_made_once():
    with pytest.raises(KafkaException):
        retrying(0)(failing(KafkaError(KafkaError._TIMED_OUT)))


def test_other_failures_are_raised_at_once():
    def call():
        raise TimeoutError("librdkafka hangs")

    with pytest.raises(TimeoutError, match="librdkafka hangs"):
        retrying(10)(call)
