-- What jobs/statistics says of metrics in windows of 10 s, of what enrichment.sql writes. Left out, to Flink's advantage:
-- percentiles, first and last values, rates of counters, missing points. A record per series, as SQL can't nest without state.
CREATE TABLE events (
  machine STRING, time_unix_nano BIGINT, series STRING, name STRING, unit STRING, `value` DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(time_unix_nano / 1000000, 3),
  WATERMARK FOR ts AS ts - INTERVAL '{lateness_s}' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.group.id' = '{group}',
  'properties.bootstrap.servers' = '{bootstrap}', 'scan.startup.mode' = 'earliest-offset',
  'properties.isolation.level' = 'read_committed', 'format' = 'json'
);

CREATE TABLE statistics (
  machine STRING, start_unix_nano BIGINT, end_unix_nano BIGINT, series STRING, name STRING, unit STRING,
  `count` BIGINT, `sum` DOUBLE, mean DOUBLE, variance DOUBLE, `min` DOUBLE, `max` DOUBLE
) WITH (
  'connector' = 'kafka', 'topic' = '{out}', 'properties.bootstrap.servers' = '{bootstrap}',
  'key.format' = 'raw', 'key.fields' = 'machine', 'value.format' = 'json',
  'properties.compression.type' = 'lz4', 'properties.linger.ms' = '50', 'properties.batch.size' = '262144',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{group}',
  'properties.transaction.timeout.ms' = '600000'
);

INSERT INTO statistics
SELECT machine,
  1000000000 * EXTRACT(EPOCH FROM window_start), 1000000000 * EXTRACT(EPOCH FROM window_end), series, name, unit,
  COUNT(*), SUM(`value`), AVG(`value`), VAR_SAMP(`value`), MIN(`value`), MAX(`value`)
FROM TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY machine, window_start, window_end, series, name, unit;
