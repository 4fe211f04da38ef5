import orjson
import pytest

from infra.contract.watermarks import OldRecordError, is_watermark, watermark_of, watermark_value


def test_a_watermark_record_says_its_time():
    assert watermark_of(orjson.loads(watermark_value(7))) == 7


def test_a_record_with_data_is_none():
    assert watermark_of({"machine": "vm-1", "time_unix_nano": 7}) is None


def test_one_of_an_older_version_is_refused_with_what_to_do():
    with pytest.raises(OldRecordError, match=r"version 0\.1\.0 .*kappa replay start --job enrichment --from earliest"):
        watermark_of({"tick_unix_nano": 7})


@pytest.mark.parametrize("record", [{"tick_unix_nano": 7}, {"watermark_unix_nano": 7}])
def test_who_only_passes_over_them_knows_both(record):
    assert is_watermark(record) and not is_watermark({"machine": "vm-1"})
