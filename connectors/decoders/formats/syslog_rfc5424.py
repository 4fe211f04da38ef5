"""Raw RFC 5424 lines: `<PRI>1 TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA [MSG]`."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns
from connectors.decoders.base import Decoder

# Possessive, and bounded in its one nested repetition: neither backtracks nor recurses on hostile input.
_PARAMETERS = r'[^"\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+){0,64}+"[^"\]]*+){0,64}+'
_STRUCTURED_DATA = rf"-|(?:\[{_PARAMETERS}\]){{1,16}}+"
_LINE = (
    r"(?s)^<([0-9]{1,3})>[0-9]{1,2} (\S{1,64}+) (\S{1,255}+) (\S{1,48}+) (\S{1,128}+) (\S{1,32}+)"
    rf" ({_STRUCTURED_DATA})(?: \x{{FEFF}}?(.*?))?\n?$"
)
# fmt: off
_FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
)
# fmt: on


def decode(df: DataFrame) -> DataFrame:
    """One row a line; codes: not_rfc5424, no_machine."""
    line = columns.text(F.col("value"))
    parsed = df.withColumn("line", line).withColumn(
        "parts", F.array(*[F.regexp_extract("line", _LINE, i) for i in range(1, 9)])
    )
    priority, time, host, app, procid, msgid, structured_data, message = (F.col("parts")[i] for i in range(8))
    code = priority.try_cast("int")
    is_line = F.coalesce(code < 8 * len(_FACILITIES), F.lit(False))
    return columns.syslog_batches(
        parsed,
        time=columns.rfc3339_unix_nano(time),
        host=host,
        app=app,
        severity_number=columns.syslog_severity_number(code % 8),
        severity_text=F.get(F.array(*[F.lit(name) for name, _ in columns.SYSLOG_SEVERITIES]), code % 8),
        facility=F.get(F.array(*[F.lit(name) for name in _FACILITIES]), F.floor(code / 8).cast("int")),
        procid=procid,
        msgid=msgid,
        structured_data=structured_data,
        message=message,
        error=F.when(~is_line, "not_rfc5424"),
    )


DECODER = Decoder("syslog_rfc5424", decode)
