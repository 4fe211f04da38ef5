package kappa.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.LongPredicate;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.Stores;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What jobs/enrichment does with OTLP metrics, by our own decoder: decode, flatten, add the machine's facts, tell late
 * events apart. A record a scrape.
 *
 * <p>Left out, to its advantage: facts as they were when the broker received the record (here they are those of now),
 * and rejected events.
 */
public final class Enrichment {

  private static final int MACHINE = 1, JSON = 3, FIRST = 4, LAST = 5; // columns of the decoder's rows

  private Enrichment() {}

  /** Runs until it is killed. */
  public static void main(String[] arguments) {
    Options options = Options.of(arguments);
    StreamsBuilder builder = new StreamsBuilder();
    GlobalKTable<String, byte[]> inventory =
        builder.globalTable(
            options.text("inventory"),
            Consumed.with(Serdes.String(), Serdes.ByteArray()),
            Materialized.as(Stores.inMemoryKeyValueStore("inventory")));
    UDF1<byte[], List<Row>> decoder = decoder();
    long lateness = options.number("lateness_ms");
    KStream<String, Batch> batches =
        builder.stream(options.text("topic"), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .process(() -> new Decode(decoder, lateness))
            .leftJoin(inventory, (machine, batch) -> machine, Batch::with);
    // A record stays in its partition, so that what is of one machine stays in order: hashed anew, the records of
    // several partitions would mix, and the stage that follows would find those of the slower ones late.
    Serde<Batch> serde = Serdes.serdeFrom((topic, batch) -> batch.json(), (topic, json) -> null);
    Produced<String, Batch> produced =
        Produced.with(Serdes.String(), serde)
            .withStreamPartitioner((topic, machine, batch, count) -> Optional.of(Set.of(batch.partition % count)));
    batches.filterNot((machine, batch) -> batch.isLate).to(options.text("out"), produced);
    batches.filter((machine, batch) -> batch.isLate).to(options.text("out") + ".late", produced);
    Application.run(builder, options);
  }

  /** The decoder of connectors/jvm: its jar is beside Spark's, and is no artifact that Maven could find. */
  @SuppressWarnings("unchecked")
  private static UDF1<byte[], List<Row>> decoder() {
    try {
      return (UDF1<byte[], List<Row>>)
          Class.forName("kappa.OtlpMetricsJson").getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** A machine's events as JSON in columns, with what belongs to all of them. */
  private record Batch(
      String machine, int partition, String id, long received, boolean isLate, byte[] inventory, byte[] events) {

    Batch with(byte[] facts) {
      return new Batch(machine, partition, id, received, isLate, facts, events);
    }

    byte[] json() {
      StringBuilder head = new StringBuilder("{\"id\":");
      head.append(quoted(id)).append(",\"machine\":").append(quoted(machine));
      head.append(",\"timestamp_unix_milli\":").append(received).append(",\"inventory\":");
      byte[] begin = head.toString().getBytes(StandardCharsets.UTF_8);
      return joined(begin, inventory == null ? bytes("null") : inventory, bytes(",\"events\":"), events, bytes("}"));
    }

    private static String quoted(String text) {
      return new String(Json.write(text), StandardCharsets.UTF_8);
    }
  }

  private static byte[] bytes(Object text) {
    return text instanceof UTF8String utf8 ? utf8.getBytes() : text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] joined(byte[]... parts) {
    int size = 0;
    for (byte[] part : parts) {
      size += part.length;
    }
    byte[] whole = new byte[size];
    int at = 0;
    for (byte[] part : parts) {
      System.arraycopy(part, 0, whole, at, part.length);
      at += part.length;
    }
    return whole;
  }

  /** A record to its machines' events, those that are late apart. What can't be used is dropped. */
  private static final class Decode extends ContextualProcessor<byte[], byte[], String, Batch> {
    private final UDF1<byte[], List<Row>> decoder;
    private final long lateness;

    Decode(UDF1<byte[], List<Row>> decoder, long lateness) {
      this.decoder = decoder;
      this.lateness = lateness;
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      try {
        for (Row row : decoder.call(record.value())) {
          if (row.get(FIRST) != null) {
            forward(record, row);
          }
        }
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }

    private void forward(Record<byte[], byte[]> record, Row row) {
      long earliest = (record.timestamp() - lateness) * 1_000_000;
      byte[] events = bytes(row.get(JSON));
      if (row.getLong(FIRST) >= earliest) {
        forward(record, row, events, false);
      } else if (row.getLong(LAST) < earliest) {
        forward(record, row, events, true);
      } else {
        forward(record, row, only(events, time -> time >= earliest), false);
        forward(record, row, only(events, time -> time < earliest), true);
      }
    }

    private void forward(Record<byte[], byte[]> record, Row row, byte[] events, boolean isLate) {
      String machine = row.get(MACHINE).toString(); // a String, or one of Spark's
      RecordMetadata from = context().recordMetadata().orElseThrow();
      String id = from.topic() + "-" + from.partition() + "-" + from.offset();
      Batch batch = new Batch(machine, from.partition(), id, record.timestamp(), isLate, null, events);
      context().forward(record.withKey(machine).withValue(batch));
    }

    /** The events whose time passes: a part of each column. */
    private static byte[] only(byte[] events, LongPredicate passes) {
      ObjectNode columns = Json.read(events, ObjectNode.class);
      JsonNode times = columns.get("time_unix_nano");
      ObjectNode kept = columns.objectNode();
      for (Map.Entry<String, JsonNode> column : columns.properties()) {
        ArrayNode cells = kept.putArray(column.getKey());
        for (int row = 0; row < times.size(); row++) {
          if (passes.test(times.get(row).longValue())) {
            cells.add(column.getValue().get(row));
          }
        }
      }
      return Json.write(kept);
    }
  }
}
