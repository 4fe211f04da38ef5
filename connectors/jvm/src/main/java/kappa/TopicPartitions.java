package kappa;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.Dependency;
import org.apache.spark.NarrowDependency;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDDPartition;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Which topics each partition of a frame is read from: Spark's source for Kafka reads one partition of one topic in
 * each, and the files of a table that is partitioned by topic are of one topic each. `connectors/topic_rows.py` uses it.
 */
public final class TopicPartitions {

  private static final String TOPIC = "topic";
  private static final Set<String> UNKNOWN = Set.of();

  private TopicPartitions() {}

  /**
   * The rows of `frame` without the partitions that are read from other topics than these; null if none is left.
   *
   * <p>A partition of which the topics aren't known stays.
   */
  public static Dataset<Row> onlyOf(Dataset<?> frame, Collection<String> topics) {
    RDD<InternalRow> rows = PreparedPlan.rowsOf(frame);
    List<Set<String>> found = topicsOf(rows);
    HashSet<Object> chosen = new HashSet<>();
    for (int partition = 0; partition < found.size(); partition++) {
      Set<String> read = found.get(partition);
      if (read.isEmpty() || !Collections.disjoint(read, topics)) {
        chosen.add(partition);
      }
    }
    if (chosen.isEmpty()) {
      return null;
    }
    // The rows' lineage goes along with each task.
    Function1<Object, Object> isChosen = (Function1<Object, Object> & Serializable) chosen::contains;
    RDD<InternalRow> pruned = PartitionPruningRDD.create(rows, isChosen);
    return frame.sparkSession().internalCreateDataFrame(pruned, frame.schema(), false);
  }

  /** The topics of each partition, UNKNOWN where they can't be told. */
  static List<Set<String>> topicsOf(RDD<?> rows) {
    List<Set<String>> found = new ArrayList<>();
    if (rows instanceof UnionRDD<?> union) {
      CollectionConverters.asJava(union.rdds()).forEach(each -> found.addAll(topicsOf(each)));
      return found;
    }
    Partition[] partitions = rows.partitions();
    if (rows instanceof FileScanRDD scan) {
      for (Partition each : partitions) {
        found.add(topicsOf((FilePartition) each, scan.readSchema()));
      }
      return found;
    }
    if (partitions.length > 0 && partitions[0] instanceof DataSourceRDDPartition) {
      for (Partition each : partitions) {
        found.add(topicOf((DataSourceRDDPartition) each));
      }
      return found;
    }
    Seq<Dependency<?>> dependencies = rows.dependencies();
    if (dependencies.size() == 1 && dependencies.apply(0) instanceof NarrowDependency<?> narrow) {
      List<Set<String>> before = topicsOf(narrow.rdd());
      if (before.size() == partitions.length) {
        return before;
      }
    }
    return Collections.nCopies(partitions.length, UNKNOWN);
  }

  private static Set<String> topicOf(DataSourceRDDPartition partition) {
    return partition.inputPartition().isDefined()
            && partition.inputPartition().get() instanceof KafkaBatchInputPartition read
        ? Set.of(read.offsetRange().topicPartition().topic())
        : UNKNOWN;
  }

  /** The columns by which a table is partitioned are the last of `schema`, and a file knows their values. */
  private static Set<String> topicsOf(FilePartition partition, StructType schema) {
    int topic = List.of(schema.fieldNames()).lastIndexOf(TOPIC);
    Set<String> found = new HashSet<>();
    for (PartitionedFile file : partition.files()) {
      InternalRow values = file.partitionValues();
      int at = topic - (schema.size() - values.numFields());
      if (at < 0 || values.isNullAt(at)) {
        return UNKNOWN;
      }
      found.add(values.getUTF8String(at).toString());
    }
    return found;
  }
}
