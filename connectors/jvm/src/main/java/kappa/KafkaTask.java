package kappa;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/**
 * A task of a micro-batch for kafka.py, which has the protocol: rows and progress marker in one transaction.
 *
 * <p>In the JVM, as taking the rows to Python costs more than writing them.
 */
public final class KafkaTask implements Function2<Integer, Iterator<InternalRow>, Iterator<String>> {

  private static final ObjectMapper JSON = new ObjectMapper();

  // Of this JVM: initTransactions costs 60 ms and more, a reused producer nothing.
  private static final Map<String, Writer> OPEN = new ConcurrentHashMap<>();

  private final Settings settings;
  private final long batch;
  private final int tasks;

  private KafkaTask(Settings settings, long batch, int tasks) {
    this.settings = settings;
    this.batch = batch;
    this.tasks = tasks;
  }

  /** Whose transactions these are: SinkSettings, with the settings of Java's clients. */
  public record Settings(
      Map<String, String> consumer,
      Map<String, String> producer,
      String query,
      String group,
      String run,
      String progressTopic,
      long timeoutMs)
      implements Serializable {

    public Settings {
      consumer = new HashMap<>(consumer);
      producer = new HashMap<>(producer);
    }

    String transactionalId(int slot) {
      return query + "-" + slot;
    }
  }

  /**
   * Write the rows of `frame` (the columns of kafka.py's `in_order`) as batch `batch`.
   *
   * @return what each task did: JSON with `skipped`, `rows` by topic, `notes` by text, `newest` timestamp in ms by origin,
   *     `sources` as (topic, partition, oldest and newest timestamp in ms), `delays` by source topic: how many rows had
   *     each, in tenths of a second
   */
  public static List<String> write(Dataset<?> frame, Settings settings, long batch, int tasks) {
    QueryExecution execution = frame.queryExecution();
    KafkaTask task = new KafkaTask(settings, batch, tasks);
    // Without an execution's id the executors wouldn't know the session's settings.
    return SQLExecution.withNewExecutionId(
        execution,
        Option.apply("kafka"),
        () -> PreparedPlan.rowsOf(frame).toJavaRDD().mapPartitionsWithIndex(task, true).collect());
  }

  /** In how many tasks `frame` will be written. */
  public static int tasksOf(Dataset<?> frame) {
    return PreparedPlan.rowsOf(frame).getNumPartitions();
  }

  @Override
  public Iterator<String> call(Integer slot, Iterator<InternalRow> rows) throws JsonProcessingException {
    Seen seen = new Seen();
    boolean wrote = writeOnce(slot, rows, seen);
    rows.forEachRemaining(seen::note); // a skipped batch still reports how far its sources have come
    return List.of(seen.toJson(!wrote)).iterator();
  }

  private boolean writeOnce(int slot, Iterator<InternalRow> rows, Seen seen) {
    // A frame that is in order is computed whole before its first row: a transaction lasts for the writing alone.
    rows.hasNext();
    Writer writer = begun(slot);
    try {
      if (writer.isNew) {
        while (rows.hasNext()) {
          InternalRow row = rows.next();
          seen.note(row);
          writer.send(row);
        }
        writer.producer.commitTransaction();
      }
      OPEN.put(settings.transactionalId(slot), writer);
      return writer.isNew;
    } catch (RuntimeException | Error failure) {
      writer.abandon(failure);
      throw failure;
    }
  }

  /** A writer that has begun this batch, or found it done: the one of the batch before, else a new one. */
  private Writer begun(int slot) {
    Writer kept = OPEN.remove(settings.transactionalId(slot));
    if (kept != null && kept.settings.equals(settings)) {
      try {
        return kept.begin(batch, tasks);
      } catch (KafkaException fenced) {
        // Another executor had this task since. No row has been touched yet.
      }
    } else if (kept != null) {
      kept.producer.close(Duration.ZERO);
    }
    return new Writer(settings, slot).begin(batch, tasks);
  }

  /** Places of the columns. */
  private static final class Column {
    static final int TOPIC = 0, PARTITION = 1, KEY = 2, VALUE = 3, TIMESTAMP = 4, HEADERS = 5;
    static final int SOURCE_TOPIC = 6, SOURCE_PARTITION = 7, SOURCE_OLDEST = 8, SOURCE_NEWEST = 9;
    static final int SOURCE_DELAY = 10, NOTE = 11, ORIGIN = 12;
  }

  /** How far this slot has come: `done` batches, the last of them for the checkpoint `run`, in `tasks` tasks. */
  private record Marker(long done, String run, int tasks) {

    static Marker of(OffsetAndMetadata position) {
      try {
        JsonNode metadata = JSON.readTree(position.metadata());
        return new Marker(position.offset(), metadata.get("run").asText(), metadata.get("tasks").asInt());
      } catch (JsonProcessingException malformed) {
        throw new IllegalStateException("progress marker " + position, malformed);
      }
    }

    OffsetAndMetadata position() {
      ObjectNode metadata = JSON.createObjectNode().put("run", run).put("tasks", tasks);
      return new OffsetAndMetadata(done, metadata + "\0"); // confluent_kafka reads on until there is one
    }

    /** Whether it says that this batch is written. Marker.check of kafka.py says more of a contradiction. */
    boolean covers(String checkpoint, long batch, int number) {
      boolean isSame = batch == done - 1 && number == tasks;
      if (!run.equals(checkpoint) || (batch < done && !isSame)) {
        throw new IllegalStateException(
            this + " contradicts batch " + batch + " of checkpoint " + checkpoint + " in " + number + " tasks");
      }
      return isSame;
    }
  }

  /** One transactional producer. Opening it fences its predecessors and settles what they left open. */
  private static final class Writer {
    final KafkaProducer<byte[], byte[]> producer;
    private final Settings settings;
    private final TopicPartition place;
    private final Map<UTF8String, String> topics = new HashMap<>();
    private Marker marker;
    private boolean isNew; // whether the batch that was begun last is to be written
    private volatile Exception failure;

    Writer(Settings settings, int slot) {
      this.settings = settings;
      this.place = new TopicPartition(settings.progressTopic, slot);
      Map<String, Object> config = new HashMap<>(settings.producer);
      config.put("transactional.id", settings.transactionalId(slot));
      this.producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
      try {
        producer.initTransactions();
        // Only now is every earlier transaction of this id committed or gone, and the marker final.
        this.marker = readMarker();
      } catch (RuntimeException failed) {
        abandon(failed);
        throw failed;
      }
    }

    private Marker readMarker() {
      Map<String, Object> config = new HashMap<>(settings.consumer);
      config.put("group.id", settings.group);
      config.put("isolation.level", "read_committed"); // waits for offsets that an open transaction holds
      var bytes = new ByteArrayDeserializer();
      try (var consumer = new KafkaConsumer<>(config, bytes, bytes)) {
        Duration timeout = Duration.ofMillis(settings.timeoutMs);
        OffsetAndMetadata position = consumer.committed(Set.of(place), timeout).get(place);
        return position == null ? null : Marker.of(position);
      }
    }

    /**
     * Open a transaction with the marker of this batch in it, unless an earlier attempt has committed it.
     *
     * <p>The marker goes first: a writer that was fenced learns it here, before it has consumed any row.
     */
    Writer begin(long batch, int tasks) {
      try {
        isNew = marker == null || !marker.covers(settings.run, batch, tasks);
        if (isNew) {
          marker = new Marker(batch + 1, settings.run, tasks);
          producer.beginTransaction();
          var group = new ConsumerGroupMetadata(settings.group);
          producer.sendOffsetsToTransaction(Map.of(place, marker.position()), group);
        }
        return this;
      } catch (RuntimeException failure) {
        abandon(failure);
        throw failure;
      }
    }

    void send(InternalRow row) {
      String topic = topic(row.getUTF8String(Column.TOPIC));
      Integer partition = row.isNullAt(Column.PARTITION) ? null : row.getInt(Column.PARTITION);
      byte[] key = row.isNullAt(Column.KEY) ? null : row.getBinary(Column.KEY);
      byte[] value = row.isNullAt(Column.VALUE) ? null : row.getBinary(Column.VALUE);
      var message = new ProducerRecord<>(topic, partition, row.getLong(Column.TIMESTAMP), key, value);
      if (!row.isNullAt(Column.HEADERS)) {
        ArrayData headers = row.getArray(Column.HEADERS);
        for (int at = 0; at < headers.numElements(); at++) {
          InternalRow header = headers.getStruct(at, 2);
          message.headers().add(header.getUTF8String(0).toString(), header.isNullAt(1) ? null : header.getBinary(1));
        }
      }
      producer.send(message, (metadata, error) -> failure = error == null ? failure : error);
      if (failure != null) {
        String name = key == null ? "null" : new String(key, StandardCharsets.UTF_8);
        int size = value == null ? 0 : value.length;
        throw new KafkaException("to " + topic + ", key " + name + ", " + size + " bytes, or before it", failure);
      }
    }

    private String topic(UTF8String name) {
      String known = topics.get(name);
      if (known == null) {
        known = name.toString();
        topics.put(name.clone(), known); // Spark reuses the memory of a row
      }
      return known;
    }

    /** Give up the open transaction; what can't be aborted now, the next writer's initTransactions aborts. */
    void abandon(Throwable reason) {
      try {
        producer.close(Duration.ofSeconds(5));
      } catch (RuntimeException failed) {
        reason.addSuppressed(failed);
      }
    }
  }

  /** What went through a task: rows by topic and by note, the times of each origin and of each source partition. */
  private static final class Seen {
    private static final Span[] NONE = {};
    private static final long TENTH_MS = 100, LONGEST_TENTHS = 36_000; // an hour: a longer delay counts as that

    private final Map<UTF8String, long[]> rows = new HashMap<>();
    private final Map<UTF8String, long[]> notes = new HashMap<>();
    private final Map<UTF8String, long[]> newest = new HashMap<>(); // by origin
    private final Map<UTF8String, Span[]> sources = new HashMap<>(); // by partition; null where nothing was read
    private final Map<UTF8String, Map<Long, Integer>> delays = new HashMap<>();

    void note(InternalRow row) {
      known(rows, row.getUTF8String(Column.TOPIC), 0)[0]++;
      if (!row.isNullAt(Column.NOTE)) {
        known(notes, row.getUTF8String(Column.NOTE), 0)[0]++;
      }
      if (!row.isNullAt(Column.ORIGIN)) {
        long time = row.getLong(Column.TIMESTAMP);
        long[] known = known(newest, row.getUTF8String(Column.ORIGIN), time);
        known[0] = Math.max(known[0], time);
      }
      if (!row.isNullAt(Column.SOURCE_TOPIC)) {
        noteSource(
            row.getUTF8String(Column.SOURCE_TOPIC),
            row.getInt(Column.SOURCE_PARTITION),
            row.getLong(Column.SOURCE_OLDEST),
            row.getLong(Column.SOURCE_NEWEST));
        if (!row.isNullAt(Column.SOURCE_DELAY)) {
          noteDelay(row.getUTF8String(Column.SOURCE_TOPIC), row.getLong(Column.SOURCE_DELAY));
        }
      }
    }

    // Keys are copied, as Spark reuses the memory of a row.

    private static long[] known(Map<UTF8String, long[]> values, UTF8String key, long first) {
      long[] known = values.get(key);
      if (known == null) {
        known = new long[] {first};
        values.put(key.clone(), known);
      }
      return known;
    }

    private void noteSource(UTF8String topic, int partition, long oldest, long newest) {
      Span[] known = sources.getOrDefault(topic, NONE);
      if (known.length <= partition) {
        known = Arrays.copyOf(known, partition + 1);
        sources.put(topic.clone(), known);
      }
      if (known[partition] == null) {
        known[partition] = new Span();
      }
      known[partition].add(oldest, newest);
    }

    private void noteDelay(UTF8String topic, long delayMs) {
      Map<Long, Integer> known = delays.get(topic);
      if (known == null) {
        known = new HashMap<>();
        delays.put(topic.clone(), known);
      }
      long tenths = (Math.max(0, delayMs) + TENTH_MS - 1) / TENTH_MS;
      known.merge(Math.min(tenths, LONGEST_TENTHS), 1, Integer::sum);
    }

    /** Timestamps from the oldest to the newest, in ms. */
    private static final class Span {
      long oldest = Long.MAX_VALUE, newest = Long.MIN_VALUE;

      void add(long first, long last) {
        oldest = Math.min(oldest, first);
        newest = Math.max(newest, last);
      }
    }

    private static void put(ObjectNode object, Map<UTF8String, long[]> values) {
      values.forEach((key, value) -> object.put(key.toString(), value[0]));
    }

    String toJson(boolean skipped) throws JsonProcessingException {
      ObjectNode result = JSON.createObjectNode().put("skipped", skipped);
      put(result.putObject("rows"), rows);
      put(result.putObject("notes"), notes);
      put(result.putObject("newest"), newest);
      var found = result.putArray("sources");
      sources.forEach(
          (topic, spans) -> {
            for (int partition = 0; partition < spans.length; partition++) {
              Span span = spans[partition];
              if (span != null) {
                found.addArray().add(topic.toString()).add(partition).add(span.oldest).add(span.newest);
              }
            }
          });
      ObjectNode late = result.putObject("delays");
      delays.forEach(
          (topic, counts) -> {
            ObjectNode object = late.putObject(topic.toString());
            counts.forEach((tenths, count) -> object.put(tenths.toString(), count));
          });
      return JSON.writeValueAsString(result);
    }
  }
}
