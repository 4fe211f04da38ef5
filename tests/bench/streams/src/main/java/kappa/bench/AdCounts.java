package kappa.bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * The Yahoo benchmark in Kafka Streams: the views of each campaign in windows of 10 s, exactly once.
 *
 * <p>Over HTTP it answers what has come of a campaign in the windows of the last minute of event time: {@code
 * /campaign?campaign=NAME}.
 */
public final class AdCounts {

  private static final JsonFactory JSON = new JsonFactory();
  private static final Duration WINDOW = Duration.ofSeconds(10);
  private static final String STORE = "counts";

  private AdCounts() {}

  /** What is needed of an event. */
  private record Ad(String id, boolean isView, long time) {

    static Ad parse(String topic, byte[] value) {
      String id = null;
      boolean isView = false;
      long time = -1;
      try (JsonParser parser = JSON.createParser(value)) {
        parser.nextToken();
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          String field = parser.currentName();
          String text = parser.nextTextValue();
          switch (field) {
            case "ad_id" -> id = text;
            case "event_type" -> isView = "view".equals(text);
            case "event_time" -> time = Long.parseLong(text);
            default -> { }
          }
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      return new Ad(id, isView, time);
    }
  }

  /** Runs until it is killed. */
  public static void main(String[] arguments) throws IOException {
    Options options = Options.of(arguments);
    KafkaStreams streams = Application.run(topology(options), options);
    serve(streams, options.number("port"));
  }

  private static StreamsBuilder topology(Options options) {
    StreamsBuilder builder = new StreamsBuilder();
    Serde<Ad> adSerde = Serdes.serdeFrom((topic, ad) -> null, Ad::parse);
    GlobalKTable<String, String> campaigns =
        builder.globalTable(
            options.text("campaigns"),
            Consumed.with(Serdes.String(), Serdes.String()),
            Materialized.as(Stores.inMemoryKeyValueStore("campaigns")));
    boolean updates = options.text("results").equals("updates");
    Duration grace = Duration.ofMillis(options.number("grace_ms"));
    KTable<Windowed<String>, Long> counts =
        builder
            .stream(
                options.text("ads"),
                Consumed.with(Serdes.ByteArray(), adSerde).withTimestampExtractor(AdCounts::timeOf))
            .filter((key, ad) -> ad.isView())
            .join(campaigns, (key, ad) -> ad.id(), (ad, campaign) -> campaign)
            .groupBy((key, campaign) -> campaign, Grouped.with(STORE, Serdes.String(), Serdes.String()))
            .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, grace))
            .count(
                Materialized.<String, Long>as(
                        Stores.inMemoryWindowStore(STORE, WINDOW.plus(grace).plusMinutes(1), WINDOW, false))
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.Long())
                    .withCachingEnabled());
    if (!updates) {
      counts = counts.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
    }
    counts
        .toStream()
        .map((window, count) -> KeyValue.pair(window.key(), record(window, count)))
        .to(options.text("out"), Produced.with(Serdes.String(), Serdes.String()));
    return builder;
  }

  private static long timeOf(ConsumerRecord<Object, Object> record, long partitionTime) {
    return ((Ad) record.value()).time();
  }

  private static String record(Windowed<String> window, long count) {
    return "{\"campaign\":\"%s\",\"window_start\":%d,\"count\":%d}"
        .formatted(window.key(), window.window().start(), count);
  }

  private static void serve(KafkaStreams streams, int port) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/campaign", exchange -> answer(streams, exchange));
    server.start();
  }

  private static void answer(KafkaStreams streams, HttpExchange exchange) throws IOException {
    String campaign = exchange.getRequestURI().getQuery().replaceFirst("^campaign=", "");
    int status = 200;
    String body;
    try {
      body = openWindows(streams, campaign);
    } catch (RuntimeException error) {
      status = 503;
      body = error.toString();
    }
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, bytes.length);
    try (exchange) {
      exchange.getResponseBody().write(bytes);
    }
  }

  private static String openWindows(KafkaStreams streams, String campaign) {
    ReadOnlyWindowStore<String, Long> store =
        streams.store(StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.windowStore()));
    StringJoiner windows = new StringJoiner(",", "{\"campaign\":\"" + campaign + "\",\"windows\":[", "]}");
    Instant now = Instant.now();
    try (WindowStoreIterator<Long> found = store.fetch(campaign, now.minusSeconds(60), now)) {
      found.forEachRemaining(
          one -> windows.add("{\"window_start\":%d,\"count\":%d}".formatted(one.key, one.value)));
    }
    return windows.toString();
  }
}
