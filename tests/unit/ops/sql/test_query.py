import pytest

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.sql.examples import EXAMPLES
from ops.sql.query import freshness, run
from ops.sql.tables import promoted_tables
from tests.unit.ops.sql.conftest import SERIES


@pytest.fixture
def tables(home):
    found = {one.name: one.open() for one in promoted_tables(Settings(home=home))}
    return {name: table for name, table in found.items() if table is not None}


def rows(tables, sql, most=100):
    return run(tables, sql, most, 128)["rows"]


def test_a_query_has_columns_with_types_and_rows(tables):
    answer = run(tables, "SELECT machine, max(score) AS top FROM novelties GROUP BY 1 ORDER BY 2 DESC", 100, 128)
    assert answer["columns"] == [{"name": "machine", "type": "VARCHAR"}, {"name": "top", "type": "DOUBLE"}]
    assert (answer["rows"], answer["is_complete"]) == ([["vm-17", 17.5], ["vm-20", 6.5]], True)


def test_series_has_a_row_for_each_series_of_a_window(tables):
    of_one = f"FROM series WHERE machine = 'vm-17' AND series = '{SERIES}'"
    assert rows(tables, f"SELECT time, mean, site, role {of_one} ORDER BY time LIMIT 2") == [
        ["2026-09-21 14:13:30.000", 0.0, "site-1", "UPF"],
        ["2026-09-21 14:13:40.000", 0.1, "site-1", "UPF"],
    ]


def test_only_the_first_rows_are_given(tables):
    answer = run(tables, "SELECT * FROM range(10)", 3, 128)
    assert (answer["rows"], answer["is_complete"]) == ([[0], [1], [2]], False)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.title)
def test_an_example_can_be_asked(tables, example):
    assert run(tables, example.sql, 100, 128)["columns"]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT 1; SELECT 2", "holds 2 statements"),
        ("", "holds 0 statements"),
        ("CREATE TABLE a AS SELECT 1", "CREATE is no query"),
        ("DELETE FROM novelties", "DELETE is no query"),
        ("COPY novelties TO '/tmp/x.csv'", "COPY is no query"),
        ("ATTACH '/tmp/x.db'", "ATTACH is no query"),
        ("INSTALL httpfs", "LOAD is no query"),
        ("SET memory_limit='10GB'", "SET is no query"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Permission Error"),
        ("SELECT * FROM read_text('/etc/passwd')", "Permission Error"),
        ("SELECT * FROM glob('/etc/*')", "Permission Error"),
        ("SELECT * FROM '/etc/passwd'", "Catalog Error"),
        ("SELECT * FROM tables", "Catalog Error"),  # a variable of this process
        ("SELECT getenv('HOME')", "Catalog Error"),
        ("SELECT nothing FROM novelties", "Binder Error"),
        ("SELEC 1", "Parser Error"),
        ("SELECT list(a) FROM range(30000000) t(a)", "Out of Memory Error"),
    ],
)
def test_what_is_no_reading_of_the_tables_is_refused(tables, sql, why):
    with pytest.raises(UserError, match=why):
        run(tables, sql, 10, 64)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT TIMESTAMP '2026-01-02 03:04:05'", "2026-01-02 03:04:05.000"),
        ("SELECT TIMESTAMPTZ '2026-01-02 03:04:05+02'", "2026-01-02 01:04:05.000"),
        ("SELECT DATE '2026-01-02'", "2026-01-02"),
        ("SELECT 'NaN'::DOUBLE", None),
        ("SELECT {'a': [1, NULL]}", {"a": [1, None]}),
        ("SELECT '\\xff'::BLOB", "ff"),
        ("SELECT 1.50::DECIMAL(9, 2)", "1.50"),
        ("SELECT NULL", None),
    ],
)
def test_values_are_such_as_json_has(tables, sql, value):
    assert rows(tables, sql) == [[value]]


def test_how_fresh_a_table_is(tables):
    about = {one["name"]: one for one in freshness({name: (table, "live") for name, table in tables.items()})}
    assert (about["novelties"]["generation"], about["novelties"]["version"], about["novelties"]["files"]) == (
        "live",
        0,
        1,
    )
    assert about["novelties"]["committed"] > 1_700_000_000_000


def test_the_pointer_says_whose_tables_are_promoted(home, tmp_path):
    import pyarrow as pa
    from deltalake import write_deltalake

    pointed = {"table": ["events.rejected", "novelties"], "generation": ["live", "v2"], "path": ["/a", "/b"]}
    write_deltalake(str(tmp_path / "delta" / "current" / "tables"), pa.table(pointed))
    found = [(one.name, one.path, one.generation) for one in promoted_tables(Settings(home=tmp_path))]
    assert found == [("events_rejected", "/a", "live"), ("novelties", "/b", "v2")]


def test_tables_on_volumes_of_their_own_are_out_of_reach(tmp_path):
    with pytest.raises(UserError, match="storage_shared"):
        promoted_tables(Settings(home=tmp_path, storage_shared=False))
