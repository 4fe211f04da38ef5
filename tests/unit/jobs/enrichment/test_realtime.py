from infra.contract.topics import load_topics
from jobs.enrichment.realtime import readable


def test_topics_whose_decoder_needs_python_are_left_out():
    topics = load_topics()
    left_out = {topic.format for topic in topics.telemetry} - {topic.format for topic in readable(topics)}
    assert left_out == {"otlp_logs_proto", "otlp_metrics_proto"}
