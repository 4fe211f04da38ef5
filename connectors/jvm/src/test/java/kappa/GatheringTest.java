package kappa;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class GatheringTest {

  private static final long PATIENCE = 2_000;
  private static final long STEP = 10;

  private final Gathering<String> gathering = new Gathering<>(PATIENCE, STEP);

  private boolean begins(long now, Map<String, Long> watermarks) {
    return gathering.begins(now, false, () -> watermarks);
  }

  @Test
  void theFirstBeginsAtOnce() {
    assertTrue(begins(-5, Map.of()));
  }

  @Test
  void recordsAreGathered() {
    assertTrue(begins(0, Map.of()));
    assertFalse(begins(PATIENCE - 1, Map.of()));
    assertTrue(begins(PATIENCE, Map.of()));
    assertFalse(begins(2 * PATIENCE - 1, Map.of()));
  }

  @Test
  void aStepDoesNotWait() {
    assertTrue(begins(0, Map.of("a", 101L, "b", 101L)));
    assertFalse(begins(1, Map.of("a", 109L, "b", 109L)));
    assertTrue(begins(2, Map.of("a", 110L, "b", 110L)));
    assertFalse(begins(3, Map.of("a", 112L, "b", 112L)));
  }

  @Test
  void aPartitionWhoseWatermarkIsSeenLaterDoesNotWaitEither() {
    assertTrue(begins(0, Map.of("a", 101L, "b", 101L)));
    assertTrue(begins(1, Map.of("a", 110L)));
    assertTrue(begins(2, Map.of("b", 110L)));
    assertFalse(begins(3, Map.of("a", 110L, "b", 110L)));
  }

  @Test
  void ofABacklogWatermarksAreNotRead() {
    Supplier<Map<String, Long>> none =
        () -> {
          throw new AssertionError("read");
        };
    assertTrue(gathering.begins(0, true, none));
    assertTrue(gathering.begins(1, true, none));
  }

  @Test
  void theWatermarkBehindABacklogIsStillToCome() {
    assertTrue(begins(0, Map.of("a", 101L)));
    assertTrue(gathering.begins(1, true, () -> Map.of("a", 110L)));
    assertTrue(begins(2, Map.of("a", 110L)));
    assertFalse(begins(3, Map.of("a", 110L)));
  }

  @Test
  void whoIsSeenForTheFirstTimeTakesNoStep() {
    assertTrue(begins(0, Map.of("a", 101L)));
    assertFalse(begins(1, Map.of("a", 101L, "b", 101L)));
    assertTrue(begins(2, Map.of("b", 110L)));
  }
}
