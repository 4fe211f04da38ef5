package kappa;

import java.util.HashMap;
import java.util.Map;

/**
 * How the records that a micro-batch may read are shared among partitions.
 *
 * <p>Spark shares them in proportion to what waits in each. So where one partition has a long backlog, the others' few
 * new records wait until it is read. Here a partition in which no more waits than half of an equal share is read to its
 * end; what is left is shared in proportion. Others with a backlog of the same time are read at the same pace, as with
 * Spark: the state of windows grows by how far one is ahead of the slowest.
 */
final class FairShare {

  private FairShare() {}

  /**
   * How many records to read of each partition.
   *
   * @param waiting how many records each has that aren't read yet
   * @param most how many to read of all together; one of each that has any may be more than that
   */
  static <P> Map<P, Long> of(Map<P, Long> waiting, long most) {
    long all = waiting.values().stream().mapToLong(Long::longValue).sum();
    if (all <= most) {
      return waiting;
    }
    long filled = waiting.values().stream().filter(records -> records > 0).count();
    long few = Math.max(1, most / (2 * filled));
    long ofFew = waiting.values().stream().filter(records -> records <= few).mapToLong(Long::longValue).sum();
    double left = Math.max(0, most - ofFew);
    Map<P, Long> shares = new HashMap<>();
    waiting.forEach(
        (partition, records) ->
            shares.put(
                partition, records <= few ? records : Math.max(1, (long) (left * records / (all - ofFew)))));
    return shares;
  }
}
