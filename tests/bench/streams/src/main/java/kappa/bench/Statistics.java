package kappa.bench;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.Stores;

/**
 * What jobs/statistics says of metrics in windows of 10 s. A record a machine and window.
 *
 * <p>A machine's window is one value of its store, not one value for each series: a scrape changes all series at once.
 * The stores are in memory, the fastest while all open windows fit; their changelogs make them durable. Left out, to its
 * advantage: percentiles, first and last values, rates of counters, missing points.
 */
public final class Statistics {

  private static final Duration SIZE = Duration.ofSeconds(10);
  private static final long NANO = 1_000_000; // of a millisecond;

  private Statistics() {}

  /** Runs until it is killed. */
  public static void main(String[] arguments) {
    Options options = Options.of(arguments);
    StreamsBuilder builder = new StreamsBuilder();
    Duration lateness = Duration.ofMillis(options.number("lateness_ms"));
    builder.stream(options.text("topic"), Consumed.with(Serdes.String(), Serdes.ByteArray()))
        .processValues(ByTime::new)
        .groupByKey(Grouped.keySerde(Serdes.String()))
        .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, lateness))
        .aggregate(
            WindowState::new,
            (machine, points, window) -> window.add(points),
            Materialized.<String, WindowState>as(
                    Stores.inMemoryWindowStore("windows", SIZE.plus(lateness), SIZE, false))
                .withKeySerde(Serdes.String())
                .withValueSerde(
                    Serdes.serdeFrom(
                        (topic, state) -> state.pack(), (topic, packed) -> WindowState.unpack(packed)))
                .withCachingEnabled())
        .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
        .toStream()
        .map((window, state) -> KeyValue.pair(window.key(), json(window, state)))
        .to(options.text("out"), Produced.with(Serdes.String(), Serdes.ByteArray()));
    Application.run(builder, options);
  }

  private record Window(long start_unix_nano, long end_unix_nano) {}

  private record Result(String machine, Window window, WindowState.Columns statistics) {}

  private static byte[] json(Windowed<String> of, WindowState state) {
    Window window = new Window(of.window().start() * NANO, of.window().end() * NANO);
    return Json.write(new Result(of.key(), window, state.columns()));
  }

  private record Events(
      List<Long> time_unix_nano, List<Double> value, List<String> series, List<String> name, List<String> unit) {}

  private record Batch(Events events) {}

  /** A record's points, as one record for each of their times, in order. */
  private static final class ByTime extends ContextualFixedKeyProcessor<String, byte[], List<Point>> {

    @Override
    public void process(FixedKeyRecord<String, byte[]> record) {
      Events events = Json.read(record.value(), Batch.class).events;
      TreeMap<Long, List<Point>> found = new TreeMap<>();
      for (int row = 0; row < events.value.size(); row++) {
        String unit = events.unit == null ? null : events.unit.get(row);
        Point point = new Point(events.series.get(row), events.name.get(row), unit, events.value.get(row));
        found.computeIfAbsent(events.time_unix_nano.get(row) / NANO, time -> new ArrayList<>()).add(point);
      }
      found.forEach((time, points) -> context().forward(record.withValue(points).withTimestamp(time)));
    }
  }
}
