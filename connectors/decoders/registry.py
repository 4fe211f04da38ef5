"""The wire formats that can be decoded. A new one is a module of `formats` and a line here."""

from connectors.decoders.base import Decoder
from connectors.decoders.formats import (
    collectd_json,
    control_json,
    lines_json,
    otlp_logs_json,
    otlp_logs_proto,
    otlp_metrics_json,
    otlp_metrics_proto,
    syslog_json,
    syslog_rfc5424,
)
from infra.errors import UserError

DECODERS: tuple[Decoder, ...] = (
    collectd_json.DECODER,
    control_json.DECODER,
    lines_json.DECODER,
    otlp_logs_json.DECODER,
    otlp_logs_proto.DECODER,
    otlp_metrics_json.DECODER,
    otlp_metrics_proto.DECODER,
    syslog_json.DECODER,
    syslog_rfc5424.DECODER,
)
_BY_NAME = {decoder.name: decoder for decoder in DECODERS}


def decoder_of(wire_format: str) -> Decoder:
    """The decoder of a wire format.

    Raises:
        UserError: no decoder has this name.
    """
    if wire_format not in _BY_NAME:
        raise UserError(f"format: no decoder is named {wire_format!r}; use one of {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[wire_format]
