import orjson
import pytest

from infra.contract.schemas import SCHEMAS
from infra.contract.versions import UPCASTERS, VERSIONS, upcast, version_header
from infra.contract.watermarks import watermark_value


def test_each_version_is_of_a_schema():
    assert VERSIONS.keys() <= SCHEMAS.keys()
    assert version_header("statistics") == ("kappa.schema", b"statistics/4")
    assert version_header("alerts") == ("kappa.schema", b"alerts/1")


def test_each_version_since_the_first_release_leads_to_the_next():
    """0.1.0 wrote events/3, statistics/3, novelties/1, incidents/1."""
    released = {"events": 3, "statistics": 3}
    wanted = {f"{schema}/{n}" for schema, now in VERSIONS.items() for n in range(released.get(schema, 1), now)}
    assert UPCASTERS.keys() == wanted


@pytest.mark.parametrize(
    ("version", "former", "present"),
    [
        (b"novelties/1", {"statistic": "spell"}, {"statistic": "sustained_deviation"}),
        (b"novelties/1", {"statistic": "level"}, {"statistic": "level"}),
        (b"statistics/3", {"control": {"told": "{}", "by": "ada"}}, {"control": {"novelty_record": "{}", "by": "ada"}}),
        (b"statistics/3", {"window": {"kind": "tumbling"}}, {"window": {"kind": "tumbling"}}),
        (b"incidents/1", {"causes": [{"name": "hv-1"}]}, {"causes": [{"name": "hv-1"}]}),
        (None, {"tick_unix_nano": 7}, {"watermark_unix_nano": 7}),
    ],
)
def test_a_former_record_becomes_one_of_this_version(version, former, present):
    assert orjson.loads(upcast(orjson.dumps(former), version)) == present


@pytest.mark.parametrize(
    "version", [b"novelties/2", b"novelties/3", b"novelties/0", b"novelties", b"x/1", b"\xff", None]
)
def test_any_other_version_comes_back_as_it_is(version):
    value = b' {"statistic":"spell"}'
    assert upcast(value, version) is value


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"7", b"null", b'"spell"', b'{"control":7}', b'{"control":[1]}'])
@pytest.mark.parametrize("version", [b"novelties/1", b"statistics/3", b"incidents/1"])
def test_what_is_not_as_its_version_says_comes_back_too(version, value):
    assert orjson.loads(upcast(value, version) or b"0") == orjson.loads(value or b"0") if value != b"{" else True


@pytest.mark.parametrize(
    "value", [b'{"tick_unix_nano":', b'{"tick_unix_nano":"x"}', b'{"tick_unix_nano":1,"a":2}', b"", None]
)
def test_what_only_begins_like_a_former_watermark_comes_back(value):
    assert upcast(value, None) == value


def test_a_watermark_of_this_version_has_no_header_either():
    assert upcast(watermark_value(7), None) == watermark_value(7)
