import pytest
from pydantic import BaseModel, ValidationError

from infra.contract.offsets import StoredOffsets, from_nested, to_nested

OFFSETS = {("events", 0): 5, ("events", 1): 7, ("inventory", 0): 0}
NESTED = {"events": {0: 5, 1: 7}, "inventory": {0: 0}}


class Plan(BaseModel):
    offsets: StoredOffsets = {}


def test_both_forms_say_the_same():
    assert to_nested(OFFSETS) == NESTED
    assert from_nested(NESTED) == OFFSETS
    assert from_nested({"events": {"0": 5}}) == {("events", 0): 5}
    assert to_nested({}) == from_nested({}) == {}


def test_a_model_stores_them_nested_and_takes_both_forms():
    plan = Plan(offsets=OFFSETS)
    assert plan.offsets == OFFSETS
    assert Plan(offsets=NESTED) == plan
    assert plan.model_dump_json() == '{"offsets":{"events":{"0":5,"1":7},"inventory":{"0":0}}}'
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert Plan.model_validate(plan.model_dump()) == plan


@pytest.mark.parametrize("stored", ['{"events": {"x": 5}}', '{"events": {"0": "five"}}', '{"events": 5}', "[]"])
def test_what_holds_no_offsets_is_refused(stored):
    with pytest.raises(ValidationError):
        Plan.model_validate_json(f'{{"offsets": {stored}}}')
