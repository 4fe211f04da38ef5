package kappa.bench;

import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** A stage of the chain in Kafka Streams, with the settings that were the fastest while results are exactly once. */
final class Application {

  private static final int THREADS = 2; // as many as Spark and Flink have
  // Each commit is a transaction and flushes the caches: at the default of 100 ms, that is what a thread does most of
  // the time. A reader sees results a commit later, so it is no longer than our trigger.
  private static final int COMMIT_MS = 1_000;
  private static final long CACHE_BYTES = 256 << 20; // all open windows: each is written once a commit, not once a scrape
  private static final int TRANSACTION_MS = 60_000; // on a busy machine a commit may be late

  private Application() {}

  /** Runs the topology until the process is killed; says so once all partitions are assigned. */
  static void run(StreamsBuilder builder, Options options) {
    Properties settings = settings(options);
    KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
    streams.setStateListener(
        (now, before) -> {
          if (now == KafkaStreams.State.RUNNING) {
            System.out.println("\"started\"");
          }
        });
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          Runtime.getRuntime().halt(1);
          return null;
        });
    streams.start();
  }

  private static Properties settings(Options options) {
    Properties found = new Properties();
    found.put(StreamsConfig.APPLICATION_ID_CONFIG, options.text("group"));
    found.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.text("bootstrap"));
    found.put(StreamsConfig.STATE_DIR_CONFIG, options.text("state"));
    found.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    found.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
    found.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, COMMIT_MS);
    found.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, CACHE_BYTES);
    found.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    found.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 5_000);
    found.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), TRANSACTION_MS);
    found.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), "lz4");
    found.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), 50);
    found.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 256 << 10);
    return found;
  }
}
