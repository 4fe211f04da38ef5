package kappa;

import static java.util.stream.Collectors.toMap;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's source for Kafka, with all its options, as the format `kappa.FairKafka`: how a micro-batch's records are
 * shared among partitions is another, {@link FairShare}, and with the options `gatherMillis` and `stepNanos` when it
 * begins, {@link Gathering}. It reads streams in micro-batches, and nothing else.
 */
public final class FairKafka implements TableProvider {

  private static final String GATHER_MILLIS = "gatherMillis";
  private static final String STEP_NANOS = "stepNanos";
  private static final String OF_CONSUMER = "kafka."; // options of Kafka's consumer begin with it

  private final KafkaSourceProvider kafka = new KafkaSourceProvider();

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return kafka.inferSchema(options);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new FairTable((SupportsRead) kafka.getTable(schema, partitioning, properties));
  }

  private record FairTable(SupportsRead kafka) implements SupportsRead {

    @Override
    public String name() {
      return kafka.name();
    }

    @Override
    public StructType schema() {
      return kafka.schema();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      ScanBuilder builder = kafka.newScanBuilder(options);
      return () -> new FairScan(builder.build(), options);
    }
  }

  private record FairScan(Scan kafka, CaseInsensitiveStringMap options) implements Scan {

    @Override
    public StructType readSchema() {
      return kafka.readSchema();
    }

    @Override
    public String description() {
      return kafka.description();
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
      return kafka.supportedCustomMetrics();
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return new FairStream((KafkaMicroBatchStream) kafka.toMicroBatchStream(checkpoint), gathering(), consumer());
    }

    private Optional<Gathering<TopicPartition>> gathering() {
      if (!options.containsKey(GATHER_MILLIS)) {
        return Optional.empty();
      }
      long nanos = TimeUnit.MILLISECONDS.toNanos(options.getLong(GATHER_MILLIS, 0));
      return Optional.of(new Gathering<>(nanos, options.getLong(STEP_NANOS, 0)));
    }

    private Map<String, String> consumer() {
      return options.asCaseSensitiveMap().entrySet().stream()
          .filter(option -> option.getKey().startsWith(OF_CONSUMER))
          .collect(toMap(option -> option.getKey().substring(OF_CONSUMER.length()), Map.Entry::getValue));
    }
  }
}
