package kappa;

import static kappa.Scrapes.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LinesJsonTest {

  private static Row row(String json) throws Exception {
    List<Row> rows = new LinesJson().call(json == null ? null : bytes(json));
    assertEquals(1, rows.size());
    return rows.get(0);
  }

  @Test
  void aDataPoint() throws Exception {
    assertEquals(
        RowFactory.create(
            0,
            "metric",
            "vm-1",
            Map.of("host.name", "vm-1"),
            "{\"time_unix_nano\":[5],\"value\":[1.50],\"series\":[\"cpu{a=b}\"],\"name\":[\"cpu\"],\"unit\":[\"1\"],"
                + "\"type\":[\"gauge\"],\"attributes\":[{\"a\":\"b\"}]}",
            5L,
            5L,
            null,
            null,
            null,
            8,
            1),
        row("{\"time_unix_nano\":5,\"machine\":\"vm-1\",\"name\":\"cpu\",\"value\":1.50,\"unit\":\"1\",\"attributes\":{\"a\":\"b\"}}"));
  }

  @Test
  void aLogLine() throws Exception {
    Row log = RowFactory.create(5L, "link down", "warn", Map.of("pid", "17"));
    assertEquals(
        RowFactory.create(0, "log", "vm-1", Map.of("host.name", "vm-1"), null, null, null, null, null, log, null, null),
        row("{\"time_unix_nano\":\"5\",\"machine\":\"vm-1\",\"body\":\"link down\",\"severity_text\":\"warn\",\"attributes\":{\"pid\":17}}"));
  }

  @ParameterizedTest
  @CsvSource({
    "'', not_json", "'{', not_json", "'[]', not_line", "'{\"attributes\":[]}', not_line", "'{\"machine\":\"m\"}', no_events",
    "'{\"machine\":\"-\",\"name\":\"n\"}', no_machine", "'{\"body\":\"b\"}', no_machine"
  })
  void codes(String json, String code) throws Exception {
    assertEquals(code, row(json).get(7));
  }
}
