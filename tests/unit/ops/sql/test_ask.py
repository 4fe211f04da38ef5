import io

import orjson
import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from ops.sql import cli
from ops.sql.ask import Limits, ask
from ops.sql.csv_text import write_csv


@pytest.fixture(autouse=True)
def at_home(home, monkeypatch):
    monkeypatch.setenv("KAPPA_HOME", str(home))


def test_the_answer_has_rows_and_how_fresh_the_tables_are():
    answer = ask("SELECT count(*) AS n FROM novelties")
    assert answer["rows"] == [[3]]
    assert [one["name"] for one in answer["tables"]] == ["events_rejected", "novelties", "statistics"]
    assert answer["missing"] == ["alerts", "incidents"]


def test_what_takes_too_long_is_ended():
    with pytest.raises(UserError, match="takes longer than 3 s"):
        ask("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7", Limits(seconds=3))


def test_what_takes_too_much_memory_is_ended():
    with pytest.raises(UserError, match=r"Out of Memory|needs more than 64 MB"):
        ask("SELECT list(a) FROM range(300000000) t(a)", Limits(seconds=30, memory_mb=64))


def test_a_query_of_enormous_length_is_refused():
    with pytest.raises(UserError, match="30,007 characters"):
        ask("SELECT " + "1" * 30_000)


def test_the_command_prints_json_csv_and_tables():
    run = CliRunner().invoke
    sql = "SELECT machine, list(phase) AS phases FROM novelties GROUP BY machine ORDER BY machine"
    assert orjson.loads(run(cli.app, [sql, "--json"]).stdout)["rows"][1] == ["vm-20", ["start"]]
    assert run(cli.app, [sql, "--csv"]).stdout.splitlines()[2] == 'vm-20,"[""start""]"'
    listed = run(cli.app, [])
    names = [line.split()[:2] for line in listed.stdout.splitlines()[1:]]
    assert names == [["events_rejected", "live"], ["novelties", "live"], ["statistics", "live"]]


def test_no_text_is_a_formula_in_a_spreadsheet():
    answer = {"columns": [{"name": "=a"}, {"name": "n"}], "rows": [["=HYPERLINK(1)", -5], ["@x", 1], ["ok", None]]}
    text = io.StringIO()
    write_csv(answer, text)
    assert text.getvalue().splitlines() == ["'=a,n", "'=HYPERLINK(1),-5", "'@x,1", "ok,"]
