package kappa;

import static kappa.Scrapes.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import kappa.Scrape.Labels;
import org.junit.jupiter.api.Test;

class ScrapeTest {

  private static final String LABELS =
      "],\"series\":[\"a\",\"b],\\\"{\"],\"name\":[\"a\",\"b\"],\"unit\":[null,\"é\"],\"attributes\":[{\"k\":\"},]\"},{}]}";
  private static final String JSON = "{\"time_unix_nano\":[10,11],\"value\":[1.50,\"NaN\"" + LABELS;

  @Test
  void theLabelsOfEachPointAsTheyStand() {
    Labels labels = Scrape.of(bytes(JSON)).labels();
    String e = new String(bytes("\"é\""), StandardCharsets.ISO_8859_1); // characters are bytes here
    assertArrayEquals(
        new String[][] {
          {"\"a\"", "\"a\"", "null", "null", "null", "null", "{\"k\":\"},]\"}"},
          {"\"b],\\\"{\"", "\"b\"", e, "null", "null", "null", "{}"}
        },
        labels.rows());
    assertEquals(LABELS, new String(Labels.text(List.of(labels.rows())), StandardCharsets.UTF_8));
  }

  @Test
  void aHistogramIsNoScrapeOfNumbers() {
    assertNull(Scrape.of(bytes("{\"time_unix_nano\":[1],\"value\":[1],\"histogram\":[{}],\"series\":[\"a\"]}")));
    assertNull(Scrape.of(bytes("{\"time_unix_nano\":[1],\"series\":[\"a\"]}")));
    assertNull(Scrape.of(bytes("{}")));
  }

  @Test
  void labelsAreEqualIfTheirBytesAre() {
    Labels one = Scrape.of(bytes(JSON)).labels();
    Labels same = Scrape.of(bytes(JSON.replace("[10,11]", "[7,9]"))).labels();
    assertEquals(one, same);
    assertEquals(one.hashCode(), same.copy().hashCode());
    assertEquals(one, same.copy());
    assertNotEquals(one, Scrape.of(bytes(JSON.replace("\"name\":[\"a\"", "\"name\":[\"c\""))).labels());
  }

  @Test
  void severalScrapesAsOne() {
    ByteArrayOutputStream times = new ByteArrayOutputStream(), values = new ByteArrayOutputStream();
    Scrape scrape = Scrape.of(bytes(JSON));
    scrape.appendTo(times, values);
    scrape.appendTo(times, values);
    String text = new String(Scrape.text(times, values, new int[] {0, 1, 0, 1}, bytes(LABELS)), StandardCharsets.UTF_8);
    assertEquals(
        "{\"time_unix_nano\":[10,11,10,11],\"value\":[1.50,\"NaN\",1.50,\"NaN\"],\"labels\":[0,1,0,1" + LABELS, text);
  }

  @Test
  void rowsInTheirOrderAreLeftOut() {
    ByteArrayOutputStream times = new ByteArrayOutputStream(), values = new ByteArrayOutputStream();
    Scrape.of(bytes(JSON)).appendTo(times, values);
    assertEquals(JSON, new String(Scrape.text(times, values, new int[] {0, 1}, bytes(LABELS)), StandardCharsets.UTF_8));
  }
}
