"""The inventory's facts are declared once; schemas and index templates have the same ones."""

import pytest

from infra.contract.inventory import FACTS
from infra.contract.schemas import INVENTORY, INVENTORY_FACTS
from jobs.indexer.indices import template_of


def test_the_schemas_have_the_facts_in_their_order():
    assert INVENTORY_FACTS.names == ["known", *FACTS, "depends_on", "valid_to_unix_nano"]
    assert INVENTORY.names == ["machine", *FACTS, "depends_on", "valid_from_unix_nano", "valid_to_unix_nano"]


@pytest.mark.parametrize("kind", ["statistics", "novelties"])
def test_the_index_templates_have_the_facts(kind):
    fields = template_of(kind)["template"]["mappings"]["properties"]
    assert {name: fields[name] for name in FACTS} == {name: {"type": "keyword", "ignore_above": 8191} for name in FACTS}
