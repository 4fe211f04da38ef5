from types import SimpleNamespace

from ops.console.unchanged import UnchangedTopics


def reader():
    """A reader that gives a, b, c, one each time that it reads."""
    return iter("abc").__next__


def test_a_topic_is_read_again_once_it_ends_elsewhere():
    ends = {"control": {("control", 0): 3}, "generations": {("generations", 0): 1}}
    topics, read = UnchangedTopics(SimpleNamespace(ends=lambda names: dict(ends[names[0]]))), reader()
    assert [topics.read("control", read) for _ in range(3)] == ["a"] * 3
    ends["control"]["control", 0] = 4
    assert [topics.read("control", read) for _ in range(3)] == ["b"] * 3
    assert topics.read("generations", reader()) == "a"


def test_a_topic_that_is_not_there_is_left_to_its_reader():
    def ends(names):
        raise KeyError(names[0])

    topics, read = UnchangedTopics(SimpleNamespace(ends=ends)), reader()
    assert [topics.read("control", read) for _ in range(2)] == ["a", "b"]
