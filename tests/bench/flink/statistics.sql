-- What jobs/statistics tells of metrics in windows of 10 s, from the same topic `events`. Left out, to Flink's advantage:
-- percentiles, first and last values, rates of counters, missing points. A record per series, as SQL can't nest without state.
-- Points that enrichment gathered count by the first one's time: a table's row has one time attribute. It is the same work.
CREATE TABLE events (
  machine STRING,
  watermark_unix_nano BIGINT,
  events ROW<time_unix_nano ARRAY<BIGINT>, `value` ARRAY<DOUBLE>, labels ARRAY<INT>,
    series ARRAY<STRING>, name ARRAY<STRING>, unit ARRAY<STRING>>,
  ts AS TO_TIMESTAMP_LTZ(COALESCE(events.time_unix_nano[1], watermark_unix_nano) / 1000000, 3),
  WATERMARK FOR ts AS ts - INTERVAL '15' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.group.id' = '{group}',
  'properties.bootstrap.servers' = '{bootstrap}', 'scan.startup.mode' = 'earliest-offset',
  'properties.isolation.level' = 'read_committed', 'format' = 'json'
);

CREATE TABLE statistics (
  machine STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), series STRING, name STRING, unit STRING,
  `count` BIGINT, `sum` DOUBLE, mean DOUBLE, variance DOUBLE, `min` DOUBLE, `max` DOUBLE,
  told TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka', 'topic' = '{out}', 'properties.bootstrap.servers' = '{bootstrap}',
  'key.format' = 'raw', 'key.fields' = 'machine', 'value.format' = 'json',
  'properties.compression.type' = 'lz4', 'properties.linger.ms' = '50', 'properties.batch.size' = '262144',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{group}',
  'properties.transaction.timeout.ms' = '600000'
);

CREATE VIEW points AS
SELECT machine, ts, events.series[label] AS series, events.name[label] AS name, events.unit[label] AS unit, `value`
FROM (
  SELECT e.machine, e.ts, e.events, p.`value`, COALESCE(e.events.labels[p.n] + 1, p.n) AS label
  FROM events AS e CROSS JOIN UNNEST(e.events.`value`) WITH ORDINALITY AS p (`value`, n)
);

INSERT INTO statistics
SELECT machine, window_start, window_end, series, name, unit,
  COUNT(*), SUM(`value`), AVG(`value`), VAR_SAMP(`value`), MIN(`value`), MAX(`value`),
  CAST(window_end AS TIMESTAMP_LTZ(3))
FROM TUMBLE(TABLE points, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY machine, window_start, window_end, series, name, unit;
