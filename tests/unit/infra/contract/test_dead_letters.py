import base64

import jsonschema

from infra.contract.dead_letters import KEPT_BYTES, REASON_CHARACTERS, InvalidRecordError, Source, dead_letter
from infra.contract.json_schema import json_schema
from infra.contract.schemas import REJECTED

SOURCE = Source("events", 3, 17, 1_234)


def test_a_dead_letter_says_who_could_not_use_what_and_why():
    letter = dead_letter("statistics", SOURCE, InvalidRecordError("not_json", "no JSON"), b"\xff")
    assert letter == {
        "id": "statistics/events/3/17",
        "stage": "statistics",
        "code": "not_json",
        "reason": "no JSON",
        "source": {"topic": "events", "partition": 3, "offset": 17, "timestamp_unix_milli": 1_234},
        "value": base64.b64encode(b"\xff").decode(),
        "events": 1,
    }
    jsonschema.validate(letter, json_schema("rejected", REJECTED))


def test_a_dead_letter_has_a_bounded_size():
    letter = dead_letter("rules", SOURCE, InvalidRecordError("not_json", "x" * 10_000), b"y" * 3_000_000)
    assert (len(letter["reason"]), len(base64.b64decode(letter["value"]))) == (REASON_CHARACTERS, KEPT_BYTES)


def test_a_record_without_a_value_has_a_dead_letter_too():
    assert dead_letter("rules", SOURCE, InvalidRecordError("not_json", "no JSON"), None)["value"] == ""
