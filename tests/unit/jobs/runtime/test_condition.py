import orjson
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from infra.contract.schemas import SCHEMAS
from infra.errors import UserError
from jobs.runtime.condition import DEEPEST, LONGEST, parse

EVENTS: StructType = SCHEMAS["events"]

HOSTILE = [
    "reflect('java.lang.Runtime', 'exit', 1)",
    "java_method('java.lang.System', 'getenv', 'PATH') = 'x'",
    "machine = java_method('java.lang.System', 'getenv', 'PATH')",
    "machine in (reflect('java.util.UUID', 'randomUUID'))",
    "machine like reflect('java.util.UUID', 'randomUUID')",
    "http_request('http://h') is null",
    "ai_query('m', machine) = 'x'",
    "machine = (select max(machine) from events)",
    "exists (select 1)",
    "machine = 'a'; drop table events",
    "machine = 'a' -- comment",
    "machine = 'a' /* comment */",
    "cast(machine as int) = 1",
    "case when true then true else false end",
    "transform(events.value, x -> x)",
    "`reflect`('java.lang.Runtime')",
    "machine rlike '(a+)+$'",
    "machine = ${env:HOME}",
    "machine = @@version",
    "machine = 'a' union select 1",
    "raise_error('x')",
    "assert_true(false)",
    "rand() < 0.5",
    "machine || 'a' = 'b'",
    "source.offset + 1 = 2",
    "source.offset % 0 = 1",
]
NONSENSE = [
    "",
    " ",
    "machin = 1",
    "machine",
    "machine =",
    "machine = 1",
    "machine in ()",
    "machine in ('a', 1)",
    "machine between 'a'",
    "machine like 1",
    "machine like 'a\\'",
    "machine like 'a\\b'",
    "source.offset like '1%'",
    "source = 'a'",
    "events.value = 1",
    "resource = 'a'",
    "resource[1] = 'a'",
    "inventory.nothing = 'a'",
    "inventory.site.x = 'a'",
    "machine = 'a' and",
    "(machine = 'a'",
    "machine = 'a')",
    "machine = 'a",
    "machine is 'a'",
    "not",
    "machine = 'a' machine = 'b'",
    "machine = 1x",
    "машина = 'a'",
    "machine = 'a'\0",
    "(" * 10_000,
    "not " * (DEEPEST + 1) + "true",
    "machine = '" + "x" * LONGEST + "'",
]


@pytest.mark.parametrize("where", HOSTILE + NONSENSE)
def test_what_is_no_comparison_of_fields_is_refused_in_one_line(where):
    with pytest.raises(UserError) as raised:
        parse(where, EVENTS)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 5_000


RECORDS = [
    {
        "machine": "vm-1",
        "inventory": {"site": "dc1", "known": True},
        "resource": {"host.name": "vm-1", "it's": "x"},
        "source": {"offset": 5},
    },
    {
        "machine": "upf-1",
        "inventory": {"site": "dc2", "known": False},
        "resource": {"k": "a_b"},
        "source": {"offset": 2**40},
    },
    {"machine": "a_b%c"},
]


@pytest.fixture(scope="module")
def records(spark):
    rows = [(number, orjson.dumps(record).decode()) for number, record in enumerate(RECORDS, 1)]
    return spark.createDataFrame(rows, "number int, json string").withColumn("record", F.from_json("json", EVENTS))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("true", [1, 2, 3]),
        ("FALSE", []),
        ("machine = 'vm-1'", [1]),
        ('machine == "vm-1"', [1]),
        ("'vm-1' = machine", [1]),
        ("machine <> 'vm-1' AND machine != 'upf-1'", [3]),
        ("machine in ('vm-1','upf-1')", [1, 2]),
        ("machine not in ('vm-1')", [2, 3]),
        ("machine like 'upf-%'", [2]),
        ("machine not like '%-1'", [3]),
        (r"machine like 'a\_b\%_'", [3]),
        ("machine between 'u' and 'v'", [2]),
        ("source.offset >= 5 and source.offset < 1e6", [1]),
        ("source.offset = 1099511627776", [2]),
        ("source.offset > -1", [1, 2]),
        ("inventory.known", [1]),
        ("inventory.known = false", [2]),
        ("not inventory.known", [2]),
        ("inventory.site is null", [3]),
        ("inventory.site is not null", [1, 2]),
        ("resource['host.name'] = machine", [1]),
        ("resource.`host.name` = 'vm-1'", [1]),
        ("resource.k = 'a_b'", [2]),
        ("resource['it''s'] = 'x'", [1]),
        ("resource[\"it's\"] = 'x'", [1]),
        ("machine = 'vm-1' or machine = 'upf-1' and inventory.known", [1]),
        ("(machine = 'vm-1' or machine = 'upf-1') and not inventory.known", [2]),
        ("machine = 'it''s'", []),
    ],
)
def test_a_condition_means_what_sql_means(records, where, expected):
    found = records.where(parse(where, EVENTS)(records["record"]))
    assert sorted(row.number for row in found.collect()) == expected
