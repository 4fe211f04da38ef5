package kappa;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import org.apache.spark.Dependency;
import org.apache.spark.NarrowDependency;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDDPartition;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import scala.Function1;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Which topic each partition of a micro-batch is read from: Spark's source for Kafka reads one partition of one topic in
 * each. `connectors/topic_rows.py` uses it.
 */
public final class TopicPartitions {

  private TopicPartitions() {}

  /**
   * The rows of `frame` without the partitions that are read from other topics than these; null if none is left.
   *
   * <p>A partition of which the topic isn't known stays.
   */
  public static Dataset<Row> onlyOf(Dataset<?> frame, Collection<String> topics) {
    RDD<InternalRow> rows = PreparedPlan.rowsOf(frame);
    List<String> found = topicsOf(rows);
    HashSet<Object> chosen = new HashSet<>();
    for (int partition = 0; partition < found.size(); partition++) {
      if (found.get(partition) == null || topics.contains(found.get(partition))) {
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

  /** The topic of each partition, null where it can't be told. */
  static List<String> topicsOf(RDD<?> rows) {
    if (rows instanceof UnionRDD<?> union) {
      List<String> found = new ArrayList<>();
      CollectionConverters.asJava(union.rdds()).forEach(each -> found.addAll(topicsOf(each)));
      return found;
    }
    Partition[] partitions = rows.partitions();
    if (partitions.length > 0 && partitions[0] instanceof DataSourceRDDPartition) {
      List<String> found = new ArrayList<>();
      for (Partition each : partitions) {
        found.add(topicOf((DataSourceRDDPartition) each));
      }
      return found;
    }
    Seq<Dependency<?>> dependencies = rows.dependencies();
    if (dependencies.size() == 1 && dependencies.apply(0) instanceof NarrowDependency<?> narrow) {
      List<String> found = topicsOf(narrow.rdd());
      if (found.size() == partitions.length) {
        return found;
      }
    }
    return Collections.nCopies(partitions.length, null);
  }

  private static String topicOf(DataSourceRDDPartition partition) {
    return partition.inputPartition().isDefined()
            && partition.inputPartition().get() instanceof KafkaBatchInputPartition read
        ? read.offsetRange().topicPartition().topic()
        : null;
  }
}
