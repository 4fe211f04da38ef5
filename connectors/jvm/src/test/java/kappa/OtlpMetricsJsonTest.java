package kappa;

import static kappa.Scrapes.START;
import static kappa.Scrapes.bytes;
import static kappa.Scrapes.point;
import static kappa.Scrapes.scrape;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OtlpMetricsJsonTest {

  private static final int RESOURCE = 2, JSON = 3, FIRST = 4, LAST = 5, ERROR = 6;

  private final OtlpMetricsJson decoder = new OtlpMetricsJson();

  private Row row(byte[] record) throws Exception {
    List<Row> rows = decoder.call(record);
    assertEquals(1, rows.size());
    return rows.get(0);
  }

  /** The columns of a row as text: those of a known template are UTF8String. */
  private List<String> texts(byte[] record) throws Exception {
    Row row = row(record);
    List<String> found = new ArrayList<>();
    for (int at = 0; at < row.size(); at++) {
      found.add(String.valueOf(row.get(at)));
    }
    return found;
  }

  /** The same read by the full reader: what begins with a space of its own has no known template. */
  private List<String> read(byte[] record, int number) throws Exception {
    return texts(bytes(" ".repeat(number) + new String(record, StandardCharsets.UTF_8)));
  }

  private static byte[] numbered(String machine, int number, String value) {
    return scrape(machine, point("b", START + number, value), point("a", START + 1, "\"asInt\":\"7\""));
  }

  @Test
  void pointsStandInTheOrderOfTheirSeriesInColumns() throws Exception {
    assertEquals(
        List.of(
            "0",
            "vm-1",
            "{host.name=vm-1}",
            "{\"time_unix_nano\":[1795245484412222355,1795245484412222359],\"value\":[7,-0.50],"
                + "\"series\":[\"m{k=a}\",\"m{k=b}\"],\"name\":[\"m\",\"m\"],\"unit\":[\"By\",\"By\"],"
                + "\"type\":[\"gauge\",\"gauge\"],\"attributes\":[{\"k\":\"a\"},{\"k\":\"b\"}]}",
            String.valueOf(START + 1),
            String.valueOf(START + 5),
            "null",
            "null",
            "6",
            "2"),
        texts(numbered("vm-1", 5, "\"asDouble\":-0.50")));
  }

  @ParameterizedTest
  @CsvSource({
    "'{', not_json", "'{} x', not_json", "'[]', not_otlp", "'{\"resourceMetrics\":null}', not_otlp",
    "'{\"resourceMetrics\":[]}', no_events", "'{\"resourceMetrics\":[{}]}', no_events"
  })
  void codes(String json, String code) throws Exception {
    assertEquals(code, row(bytes(json)).get(ERROR));
  }

  @Test
  void noRecordIsNoJson() throws Exception {
    assertEquals("not_json", row(null).get(ERROR));
  }

  @Test
  void ofAFieldThatStandsTwiceTheLastCounts() throws Exception {
    byte[] record = scrape("vm-2", point("a", START, "\"asDouble\":1,\"asDouble\":2.5"));
    assertEquals("[2.5]", cells(row(record), "value"));
  }

  @Test
  void bytesThatAreNotUtf8BecomeReplacementCharacters() throws Exception {
    byte[] record = scrape("vm-3", point("a#", START, "\"asDouble\":1"));
    record[new String(record, StandardCharsets.ISO_8859_1).indexOf("a#") + 1] = (byte) 0xff;
    assertEquals("[{\"k\":\"a\ufffd\"}]", cells(row(record), "attributes"));
  }

  @Test
  void numbersThatAreNotFiniteAreWrittenAsTextAndLeaveTheTimesOpen() throws Exception {
    Row row = row(scrape("vm-4", point("a", START, "\"asDouble\":-1e999")));
    assertEquals("[\"-Infinity\"]", cells(row, "value"));
    assertNull(row.get(FIRST));
    assertNull(row.get(LAST));
  }

  @ParameterizedTest
  @CsvSource({
    "'\"asDouble\":0.25'", "'\"asDouble\":-0'", "'\"asDouble\":1e5'", "'\"asDouble\":5e-324'", "'\"asDouble\":1e999'",
    "'\"asDouble\":01'", "'\"asDouble\":NaN'", "'\"asDouble\":\"NaN\"'", "'\"asDouble\":null'", "'\"asInt\":\"-7\"'"
  })
  void aRecordOfAKnownTemplateGivesTheRowOfTheReader(String value) throws Exception {
    String machine = "template-" + value.hashCode();
    for (int number = 0; number < 4; number++) {
      texts(numbered(machine, number, "\"asDouble\":1.5"));
      assertEquals(
          read(numbered(machine, number, value), number + 1), texts(numbered(machine, number, value)), "record " + number);
    }
  }

  @Test
  void aTemplateIsKnownAfterTwoRecordsOfTheSameOrder() throws Exception {
    List<Object> resources = new ArrayList<>();
    for (int number = 0; number < 5; number++) {
      resources.add(row(numbered("once", number, "\"asDouble\":1.5")).get(RESOURCE)); // only the reader makes a new one
    }
    assertNotSame(resources.get(0), resources.get(1));
    assertNotSame(resources.get(1), resources.get(2));
    assertSame(resources.get(2), resources.get(3));
    assertSame(resources.get(2), resources.get(4));
  }

  @Test
  void pointsInAnotherOrderEachTimeHaveNoTemplate() throws Exception {
    List<Object> resources = new ArrayList<>();
    for (int number = 0; number < 6; number++) {
      String[] points = {point("a", START, "\"asDouble\":1"), point("b", START, "\"asDouble\":2")};
      boolean isEven = number % 2 == 0;
      resources.add(row(scrape("shuffled", points[isEven ? 0 : 1], points[isEven ? 1 : 0])).get(RESOURCE));
      for (int before = 0; before < number; before++) {
        assertNotSame(resources.get(before), resources.get(number));
      }
    }
  }

  private static String cells(Row row, String column) {
    String json = String.valueOf(row.get(JSON));
    int begin = json.indexOf("\"" + column + "\":") + column.length() + 3;
    return json.substring(begin, json.indexOf(']', begin) + 1);
  }
}
