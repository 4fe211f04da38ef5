import numpy as np
import pyarrow as pa
import pytest

from jobs.enrichment.templates import template_of
from jobs.statistics.parameter_values import (
    LINE_CHARACTERS,
    TEMPLATE_CHARACTERS,
    UNITS,
    hashes,
    numbers,
    parameters,
    values,
    with_value,
)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("Took 19.05 seconds to build instance i-7.", ["19.05", "i-7"]),
        ("[10.0.0.1] status: 503 len: 12 time: 0.25", ["10.0.0.1", "503", "12", "0.25"]),
        ("uid=0 (x) {7} [a|b] ^? 5", ["0", "7", "5"]),
        ("ärger 7\n8 fertig", ["7", "8"]),
        ("nothing variable", []),
    ],
)
def test_a_line_has_a_value_for_each_parameter_of_its_template(line, parts):
    template = template_of(line)
    assert parameters(template) == len(parts)
    assert list(values(template, line)) == parts


def test_a_line_that_does_not_read_as_the_template_has_none():
    assert values("took <*> s", "took 5 s") == ("5",)
    assert values("took <*> s", "lasts 5 s") == ()


def test_only_what_a_template_is_made_of_is_looked_at():
    assert values("took <*> s", f"took {'x' * LINE_CHARACTERS} s") == ()
    assert parameters("<*> " * TEMPLATE_CHARACTERS) == 0


def test_of_many_parameters_the_first_eight_are_looked_at():
    template, line = " ".join(["a<*>b"] * 10), " ".join(f"a{at}b" for at in range(10))
    assert parameters(template) == 8
    assert values(template, line) == tuple(str(at) for at in range(8))


def test_a_template_with_a_value():
    assert with_value("a <*> b <*> c <*>", 1, "<7>") == "a <*> b <7> c <*>"


def test_numbers_are_in_bytes_seconds_and_hertz():
    texts = ["5", "-0.5", "+7", "1.5e-3", "5 KB", "2MiB", "250ms", "3µs", "2 min", "45%", "2.5GHz"]
    found = numbers(pa.array(texts))
    assert found.value.tolist() == pytest.approx([5, -0.5, 7, 0.0015, 5000, 2 * 2**20, 0.25, 3e-6, 120, 45, 2.5e9])
    assert [UNITS[unit] for unit in found.unit] == ["", "", "", "", "B", "B", "s", "s", "s", "%", "Hz"]


def test_other_texts_are_no_numbers():
    assert np.isnan(numbers(pa.array(["x5", "1.2.3", "5 x", "0x1f", "--5", "1,5"])).value).all()


def test_hashes_are_those_of_any_process():
    error, ok, again = hashes(pa.array(["ERROR", "OK", "ERROR"])).tolist()
    assert error == again == -4954607729481631845 != ok
