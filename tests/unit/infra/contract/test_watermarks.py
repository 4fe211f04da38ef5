import orjson

from infra.contract.watermarks import is_watermark, watermark_of, watermark_value


def test_a_watermark_record_says_its_time():
    assert watermark_of(orjson.loads(watermark_value(7))) == 7


def test_a_record_with_data_is_none():
    assert watermark_of({"machine": "vm-1", "time_unix_nano": 7}) is None


def test_who_only_passes_over_them_knows_them():
    assert is_watermark({"watermark_unix_nano": 7}) and not is_watermark({"machine": "vm-1"})
