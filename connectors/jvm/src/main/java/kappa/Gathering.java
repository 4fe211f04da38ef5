package kappa;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * When a micro-batch begins of a job that emits at certain steps of event time, such as windows' ends: as soon as a
 * watermark takes such a step, else when records have been gathered for some time, or when there are as many as a
 * micro-batch may read.
 *
 * <p>So what is waited for comes at once, and the records between don't cost a batch each time there are any.
 */
final class Gathering<P> {

  private final long nanos;
  private final long step;
  private final Map<P, Long> taken = new HashMap<>(); // of each partition, the number of its last step
  private long begun;
  private boolean hasBegun;

  /**
   * @param nanos how long records are gathered, by the clock
   * @param step from one multiple of it to the next, in nanoseconds of event time, is a step
   */
  Gathering(long nanos, long step) {
    this.nanos = nanos;
    this.step = step;
  }

  /**
   * Whether a micro-batch begins now; the first one does.
   *
   * @param now the clock, as {@link System#nanoTime} gives it
   * @param isFull whether there are as many records as it may read
   * @param lastWatermarks reads the last watermark, in nanoseconds of event time, of each partition that ends with one
   */
  boolean begins(long now, boolean isFull, Supplier<Map<P, Long>> lastWatermarks) {
    Map<P, Long> steps = new HashMap<>();
    if (!isFull) { // of a backlog the last watermark isn't in this micro-batch
      lastWatermarks.get().forEach((partition, watermark) -> steps.put(partition, watermark / step));
    }
    boolean begins = isFull || !hasBegun || now - begun >= nanos || isNew(steps);
    steps.forEach(begins ? taken::put : taken::putIfAbsent);
    if (begins) {
      hasBegun = true;
      begun = now;
    }
    return begins;
  }

  /** Where a partition stands whose watermark is seen for the first time isn't known: it takes no step. */
  private boolean isNew(Map<P, Long> steps) {
    return steps.entrySet().stream()
        .filter(one -> taken.containsKey(one.getKey()))
        .anyMatch(one -> one.getValue() > taken.get(one.getKey()));
  }
}
