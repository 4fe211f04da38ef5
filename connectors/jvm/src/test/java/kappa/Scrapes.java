package kappa;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Records of OTLP metrics for the tests. */
final class Scrapes {

  static final long START = 1795245484412222354L;

  private Scrapes() {}

  /** A data point of the attribute `k`, as a Collector writes it. */
  static String point(String k, long time, String value) {
    return "{\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":\"%s\"}}],\"startTimeUnixNano\":\"%d\",\"timeUnixNano\":\"%d\",%s}"
        .formatted(k, START, time, value);
  }

  /** One machine's scrape of one gauge. */
  static byte[] scrape(String machine, String... points) {
    return bytes(
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"host.name\",\"value\":{\"stringValue\":\"%s\"}}]},"
                .formatted(machine)
            + "\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"unit\":\"By\",\"gauge\":{\"dataPoints\":["
            + Arrays.stream(points).collect(Collectors.joining(","))
            + "]}}]}]}]}");
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
