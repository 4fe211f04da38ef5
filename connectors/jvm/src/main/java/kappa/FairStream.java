package kappa;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourceOffset;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A stream of Spark's source for Kafka of which a micro-batch ends where {@link FairShare} says, and begins when {@link
 * Gathering} says, if there is one.
 */
final class FairStream implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics {

  private final KafkaMicroBatchStream kafka;
  private final Optional<Gathering<TopicPartition>> gathering;
  private final Map<String, String> consumer;
  private LastWatermarks watermarks; // once it is needed

  /** @param consumer Kafka's options of a consumer, with which watermarks are read */
  FairStream(
      KafkaMicroBatchStream kafka, Optional<Gathering<TopicPartition>> gathering, Map<String, String> consumer) {
    this.kafka = kafka;
    this.gathering = gathering;
    this.consumer = consumer;
  }

  /**
   * Where a micro-batch ends, which is where it starts if none begins now; a partition that has never been read has it
   * as Spark limits it.
   */
  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    if (!(limit instanceof ReadMaxRows most)) {
      return kafka.latestOffset(start, limit);
    }
    Offset all = kafka.latestOffset(start, ReadLimit.allAvailable());
    if (all == null) {
      return null;
    }
    Map<TopicPartition, Object> begin = byPartition(start);
    Map<TopicPartition, Object> end = byPartition(all);
    if (!begin.keySet().containsAll(end.keySet())) {
      return kafka.latestOffset(start, limit);
    }
    Map<TopicPartition, Long> waiting = new HashMap<>();
    end.forEach((partition, last) -> waiting.put(partition, Math.max(0, (Long) last - (Long) begin.get(partition))));
    if (gathering.isPresent() && !begins(gathering.get(), waiting, end, most.maxRows())) {
      return start;
    }
    FairShare.of(waiting, most.maxRows())
        .forEach((partition, records) -> end.put(partition, (Long) begin.get(partition) + records));
    return new KafkaSourceOffset(scala.collection.immutable.Map.from(CollectionConverters.asScala(end)));
  }

  private boolean begins(
      Gathering<TopicPartition> gathering, Map<TopicPartition, Long> waiting, Map<TopicPartition, Object> end, long most) {
    long all = waiting.values().stream().mapToLong(Long::longValue).sum();
    return all > 0 && gathering.begins(System.nanoTime(), all >= most, () -> lastWatermarks(waiting, end));
  }

  private Map<TopicPartition, Long> lastWatermarks(
      Map<TopicPartition, Long> waiting, Map<TopicPartition, Object> end) {
    Map<TopicPartition, Long> ends = new HashMap<>();
    waiting.forEach(
        (partition, records) -> {
          if (records >= LastWatermarks.WITH_MARKER) {
            ends.put(partition, (Long) end.get(partition));
          }
        });
    if (watermarks == null) {
      watermarks = new LastWatermarks(consumer);
    }
    return watermarks.before(ends);
  }

  private static Map<TopicPartition, Object> byPartition(Offset offset) {
    return new HashMap<>(CollectionConverters.asJava(((KafkaSourceOffset) offset).partitionToOffsets()));
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return kafka.getDefaultReadLimit();
  }

  @Override
  public Offset reportLatestOffset() {
    return kafka.reportLatestOffset();
  }

  @Override
  public Offset latestOffset() {
    return kafka.latestOffset();
  }

  @Override
  public Offset initialOffset() {
    return kafka.initialOffset();
  }

  @Override
  public Offset deserializeOffset(String json) {
    return kafka.deserializeOffset(json);
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return kafka.planInputPartitions(start, end);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return kafka.createReaderFactory();
  }

  @Override
  public Map<String, String> metrics(Optional<Offset> latestConsumed) {
    return kafka.metrics(latestConsumed);
  }

  @Override
  public void commit(Offset end) {
    kafka.commit(end);
  }

  @Override
  public void stop() {
    if (watermarks != null) {
      watermarks.close();
    }
    kafka.stop();
  }

  @Override
  public String toString() {
    return kafka.toString();
  }
}
