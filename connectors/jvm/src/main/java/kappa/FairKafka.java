package kappa;

import java.util.Map;
import java.util.Set;
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
 * Spark's source for Kafka, with all its options, as the format `kappa.FairKafka`: only how a micro-batch's records are
 * shared among partitions is another, {@link FairShare}. It reads streams in micro-batches, and nothing else.
 */
public final class FairKafka implements TableProvider {

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
      return () -> new FairScan(builder.build());
    }
  }

  private record FairScan(Scan kafka) implements Scan {

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
      return new FairStream((KafkaMicroBatchStream) kafka.toMicroBatchStream(checkpoint));
    }
  }
}
