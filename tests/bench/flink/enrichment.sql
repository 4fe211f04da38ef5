-- What jobs/enrichment does with OTLP metrics: decode, flatten, add the machine's facts as known when the broker received
-- the record, tell late events apart. A record per data point, as SQL can't map over an array.
CREATE TABLE telemetry (
  machine STRING,
  resourceMetrics ARRAY<ROW<
    scopeMetrics ARRAY<ROW<
      metrics ARRAY<ROW<
        name STRING,
        unit STRING,
        gauge ROW<dataPoints ARRAY<ROW<
          attributes ARRAY<ROW<`key` STRING, `value` ROW<stringValue STRING>>>,
          timeUnixNano STRING, asDouble DOUBLE, asInt STRING>>>,
        `sum` ROW<dataPoints ARRAY<ROW<
          attributes ARRAY<ROW<`key` STRING, `value` ROW<stringValue STRING>>>,
          timeUnixNano STRING, asDouble DOUBLE, asInt STRING>>,
          aggregationTemporality INT, isMonotonic BOOLEAN>
      >>
    >>
  >>,
  kafka_partition INT METADATA FROM 'partition' VIRTUAL,
  kafka_offset BIGINT METADATA FROM 'offset' VIRTUAL,
  received TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  WATERMARK FOR received AS received
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.group.id' = '{group}',
  'properties.bootstrap.servers' = '{bootstrap}', 'scan.startup.mode' = 'earliest-offset',
  'key.format' = 'raw', 'key.fields' = 'machine', 'value.fields-include' = 'EXCEPT_KEY',
  'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true'
);

CREATE TABLE inventory (
  machine STRING,
  `type` STRING, site STRING, hypervisor STRING, tenant STRING, `role` STRING,
  known_from TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  WATERMARK FOR known_from AS known_from,
  PRIMARY KEY (machine) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{inventory}', 'properties.group.id' = '{group}-inventory',
  'properties.bootstrap.servers' = '{bootstrap}', 'key.format' = 'raw', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE events (
  topic STRING METADATA,
  machine STRING, id STRING,
  inventory ROW<`type` STRING, site STRING, hypervisor STRING, tenant STRING, `role` STRING>,
  received TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', timestamp_unix_milli BIGINT, time_unix_nano BIGINT,
  series STRING, name STRING, unit STRING, `value` DOUBLE,
  temporality INT, monotonic BOOLEAN, attributes ARRAY<ROW<`key` STRING, `value` ROW<stringValue STRING>>>
) WITH (
  'connector' = 'kafka', 'topic' = '{out};{out}.late', 'properties.bootstrap.servers' = '{bootstrap}',
  'key.format' = 'raw', 'key.fields' = 'machine', 'value.format' = 'json', 'value.json.encode.ignore-null-fields' = 'true',
  'properties.compression.type' = 'lz4', 'properties.linger.ms' = '50', 'properties.batch.size' = '262144',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{group}',
  'properties.transaction.timeout.ms' = '600000'
);

INSERT INTO events
SELECT
  IF(CAST(p.timeUnixNano AS BIGINT) / 1000000 < 1000 * EXTRACT(EPOCH FROM received) - {lateness_ms}, '{out}.late', '{out}'),
  t.machine,
  CONCAT_WS('-', '{topic}', CAST(kafka_partition AS STRING), CAST(kafka_offset AS STRING)) AS id,
  ROW(i.`type`, i.site, i.hypervisor, i.tenant, i.`role`) AS inventory,
  received,
  1000 * EXTRACT(EPOCH FROM received) + EXTRACT(MILLISECOND FROM received) AS timestamp_unix_milli,
  CAST(p.timeUnixNano AS BIGINT) AS time_unix_nano,
  CASE CARDINALITY(p.attributes)
    WHEN 1 THEN CONCAT(m.name, '{{', p.attributes[1].`key`, '=', p.attributes[1].`value`.stringValue, '}}')
    WHEN 2 THEN CONCAT(m.name, '{{', p.attributes[1].`key`, '=', p.attributes[1].`value`.stringValue, ',',
                       p.attributes[2].`key`, '=', p.attributes[2].`value`.stringValue, '}}')
    ELSE m.name
  END AS series,
  m.name, m.unit,
  COALESCE(p.asDouble, CAST(p.asInt AS DOUBLE)) AS `value`,
  m.`sum`.aggregationTemporality AS temporality, m.`sum`.isMonotonic AS monotonic,
  p.attributes
FROM telemetry AS t
LEFT JOIN inventory FOR SYSTEM_TIME AS OF t.received AS i ON t.machine = i.machine
CROSS JOIN UNNEST(t.resourceMetrics) AS r (scopeMetrics)
CROSS JOIN UNNEST(r.scopeMetrics) AS s (metrics)
CROSS JOIN UNNEST(s.metrics) AS m (name, unit, gauge, `sum`)
CROSS JOIN UNNEST(COALESCE(m.gauge.dataPoints, m.`sum`.dataPoints)) AS p (attributes, timeUnixNano, asDouble, asInt);
