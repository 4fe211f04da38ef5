package kappa.bench;

import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** A program in Kafka Streams, with the settings that were the fastest while results are exactly once. */
final class Application {

  private static final int THREADS = 2; // as many as Spark and Flink have
  private static final long CACHE_BYTES = 256 << 20; // all open windows: each is written once a commit, not once a scrape
  // As the other engines have it; by default ten seconds without CPU time end the program.
  private static final int TRANSACTION_MS = 600_000;

  private Application() {}

  /**
   * Runs the topology until the process is killed; says so once all partitions are assigned.
   *
   * <p>Each commit (`commit_ms`) is a transaction and flushes the caches, and a reader sees results a commit later: the
   * default of 100 ms is what a thread does most of the time under a full load, and what is best where results are to
   * be there soon.
   */
  static KafkaStreams run(StreamsBuilder builder, Options options) {
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
    return streams;
  }

  private static Properties settings(Options options) {
    Properties found = new Properties();
    found.put(StreamsConfig.APPLICATION_ID_CONFIG, options.text("group"));
    found.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.text("bootstrap"));
    found.put(StreamsConfig.STATE_DIR_CONFIG, options.text("state"));
    found.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    found.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
    found.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, options.number("commit_ms"));
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
