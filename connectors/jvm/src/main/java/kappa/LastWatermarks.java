package kappa;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads the watermark records with which partitions end, see `infra/contract/watermarks.py`.
 *
 * <p>A job's transaction ends with them: behind each there is the marker of its commit, and no more.
 */
final class LastWatermarks implements AutoCloseable {

  static final long WITH_MARKER = 2; // offsets that a watermark and the marker behind it take

  private static final Pattern WATERMARK = Pattern.compile("\\{\"watermark_unix_nano\":(\\d{1,18}|[1-8]\\d{18})}");
  private static final Duration PATIENCE = Duration.ofMillis(500);

  private final KafkaConsumer<byte[], byte[]> consumer;

  /** @param options Kafka's, of a consumer */
  LastWatermarks(Map<String, String> options) {
    Map<String, Object> own = new HashMap<>(options);
    own.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
    own.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 4096);
    consumer = new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  /**
   * The watermarks, in nanoseconds, of those partitions that end with one; what isn't read in half a second is left
   * out.
   *
   * @param ends the offsets at which committed records end, at least 2
   */
  Map<TopicPartition, Long> before(Map<TopicPartition, Long> ends) {
    consumer.assign(ends.keySet());
    ends.forEach((partition, end) -> consumer.seek(partition, end - WITH_MARKER));
    Map<TopicPartition, Long> found = new HashMap<>();
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (isOpen(ends) && System.nanoTime() < deadline) {
      for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PATIENCE)) {
        TopicPartition partition = new TopicPartition(record.topic(), record.partition());
        if (record.offset() < ends.get(partition)) { // more may have been committed since
          watermarkOf(record).ifPresent(watermark -> found.put(partition, watermark));
        }
      }
    }
    return found;
  }

  private boolean isOpen(Map<TopicPartition, Long> ends) {
    return ends.entrySet().stream().anyMatch(one -> consumer.position(one.getKey()) < one.getValue());
  }

  private static OptionalLong watermarkOf(ConsumerRecord<byte[], byte[]> record) {
    if (record.key() != null || record.value() == null) {
      return OptionalLong.empty();
    }
    Matcher value = WATERMARK.matcher(new String(record.value(), US_ASCII));
    return value.matches() ? OptionalLong.of(Long.parseLong(value.group(1))) : OptionalLong.empty();
  }

  @Override
  public void close() {
    consumer.close();
  }
}
