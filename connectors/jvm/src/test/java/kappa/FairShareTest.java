package kappa;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.junit.jupiter.api.Test;

class FairShareTest {

  @Test
  void allIsReadIfItFits() {
    Map<String, Long> waiting = Map.of("a", 900L, "b", 100L, "c", 0L);
    assertEquals(waiting, FairShare.of(waiting, 1_000));
  }

  @Test
  void fewNewRecordsDontWaitForABacklog() {
    // Spark's share of b would be one record.
    assertEquals(Map.of("a", 750L, "b", 250L), FairShare.of(Map.of("a", 10_000_000L, "b", 250L), 1_000));
  }

  @Test
  void aBacklogIsReadInProportion() {
    assertEquals(Map.of("a", 750L, "b", 250L), FairShare.of(Map.of("a", 753L, "b", 251L), 1_000));
    assertEquals(
        Map.of("a", 675L, "b", 225L, "c", 100L),
        FairShare.of(Map.of("a", 9_000L, "b", 3_000L, "c", 100L), 1_000));
  }

  @Test
  void whatIsEmptyHasNoShare() {
    assertEquals(Map.of("a", 1_000L, "b", 0L), FairShare.of(Map.of("a", 5_000L, "b", 0L), 1_000));
  }

  @Test
  void eachGetsARecordHoweverSmallTheLimitIs() {
    assertEquals(Map.of("a", 1L, "b", 1L, "c", 1L), FairShare.of(Map.of("a", 9L, "b", 5L, "c", 1L), 2));
  }
}
