import pytest

from ops.console.pages import soft, unit


def test_a_name_may_be_broken_behind_its_marks_and_is_escaped():
    assert soft("a.b{c=<i>}") == "a.<wbr>b{<wbr>c=<wbr>&lt;i&gt;}"
    assert soft("") == ""


@pytest.mark.parametrize(("said", "shown"), [("1", ""), (None, ""), ("By/s", "By/s"), ("{request}/s", "request/s")])
def test_a_unit_is_as_people_write_it(said, shown):
    assert unit(said) == shown
