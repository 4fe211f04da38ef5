-- The Yahoo benchmark in Flink: the views of each campaign in windows of 10 s. The table of campaigns is known from 1970 on.
CREATE TABLE ads (
  ad_id STRING, event_type STRING, event_time STRING,
  ts AS TO_TIMESTAMP_LTZ(CAST(event_time AS BIGINT), 3),
  WATERMARK FOR ts AS ts - INTERVAL '{lateness_s}' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = '{ads}', 'properties.group.id' = '{group}',
  'properties.bootstrap.servers' = '{bootstrap}', 'scan.startup.mode' = 'earliest-offset', 'value.format' = 'json'
);

CREATE TABLE campaigns (
  ad_id STRING, campaign STRING,
  known_from TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  WATERMARK FOR known_from AS known_from,
  PRIMARY KEY (ad_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{campaigns}', 'properties.group.id' = '{group}-campaigns',
  'properties.bootstrap.servers' = '{bootstrap}', 'key.format' = 'raw', 'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY', 'scan.watermark.idle-timeout' = '2 s'
);

CREATE TABLE counts (
  campaign STRING, window_start BIGINT, `count` BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = '{out}', 'properties.bootstrap.servers' = '{bootstrap}',
  'key.format' = 'raw', 'key.fields' = 'campaign', 'value.format' = 'json',
  'properties.compression.type' = 'lz4', 'properties.linger.ms' = '50', 'properties.batch.size' = '262144',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{group}',
  'properties.transaction.timeout.ms' = '600000'
);

CREATE VIEW viewed AS
SELECT a.ts, c.campaign
FROM ads AS a
JOIN campaigns FOR SYSTEM_TIME AS OF a.ts AS c ON a.ad_id = c.ad_id
WHERE a.event_type = 'view';

INSERT INTO counts
SELECT campaign, 1000 * EXTRACT(EPOCH FROM window_start), COUNT(*)
FROM TUMBLE(TABLE viewed, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY campaign, window_start, window_end;
