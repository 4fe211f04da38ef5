package kappa;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class CoalescerTest {

  // Only names count, and how many fields a group has; types with text would need a library more.
  private static final DataType ANY = LongType$.MODULE$;
  private static final StructType SCHEMA =
      new StructType()
          .add("group", new StructType().add("machine", ANY))
          .add("json", ANY)
          .add("offset", ANY)
          .add("timestamp", ANY)
          .add("delay_ms", ANY);

  private static UnsafeRow row(String machine, String json, long offset) {
    UnsafeRowWriter row = new UnsafeRowWriter(SCHEMA.size());
    row.resetRowWriter();
    if (machine == null) {
      row.setNullAt(0);
    } else {
      UnsafeRowWriter group = new UnsafeRowWriter(row, 1);
      int begin = row.cursor();
      group.resetRowWriter();
      group.write(0, UTF8String.fromString(machine));
      row.setOffsetAndSizeFromPreviousCursor(0, begin);
    }
    row.write(1, UTF8String.fromString(json));
    row.write(2, offset);
    row.write(3, 1_000 * offset);
    row.write(4, 1_000 - 100 * offset);
    return row.getRow();
  }

  private static String points(String times, String values, String series) {
    return "{\"time_unix_nano\":[" + times + "],\"value\":[" + values + "],\"series\":[" + series + "]}";
  }

  /** For each row: its own offset, its coalesced JSON, the last offset, the newest timestamp and the longest delay. */
  private static List<List<Object>> coalesced(InternalRow... rows) {
    Iterator<InternalRow> found = new Coalescer(SCHEMA).call(List.of(rows).iterator());
    List<List<Object>> all = new ArrayList<>();
    while (found.hasNext()) {
      InternalRow row = found.next();
      List<Object> one = new ArrayList<>(List.of(row.getLong(2)));
      if (!row.isNullAt(5)) {
        one.addAll(List.of(row.getUTF8String(5).toString(), row.getLong(6), row.getLong(7), row.getLong(8)));
      }
      all.add(one);
    }
    return all;
  }

  @Test
  void theSameLabelsStandOnce() {
    String one = points("1,2", "0.5,6", "\"a\",\"b\""), two = points("3,4", "0.25,7", "\"a\",\"b\"");
    String both =
        "{\"time_unix_nano\":[1,2,3,4],\"value\":[0.5,6,0.25,7],\"labels\":[0,1,0,1],\"series\":[\"a\",\"b\"]}";
    assertEquals(List.of(List.of(5L, both, 9L, 9_000L, 500L)), coalesced(row("vm", one, 5), row("vm", two, 9)));
  }

  @Test
  void differentLabelsStandInAnOrderOfTheirOwn() {
    String b = points("1", "1", "\"b\""), a = points("2", "2", "\"a\"");
    String both = "{\"time_unix_nano\":[%s],\"value\":[%s],%s\"series\":[\"a\",\"b\"]}";
    assertEquals(
        List.of(List.of(1L, both.formatted("1,2", "1,2", "\"labels\":[1,0],"), 2L, 2_000L, 900L)),
        coalesced(row("vm", b, 1), row("vm", a, 2)));
    assertEquals(
        List.of(List.of(1L, both.formatted("2,1", "2,1", ""), 2L, 2_000L, 900L)),
        coalesced(row("vm", a, 1), row("vm", b, 2)));
  }

  @Test
  void aRowOfItsOwnGroupOrOfNoneOrWithAHistogramStaysAsItIs() {
    String one = points("1", "1", "\"a\"");
    String histogram = "{\"time_unix_nano\":[1],\"value\":[1],\"histogram\":[{}],\"series\":[\"h\"]}";
    List<List<Object>> found =
        coalesced(row("vm-1", one, 1), row(null, one, 2), row("vm-2", one, 3), row("vm-1", histogram, 4));
    assertEquals(List.of(List.of(2L), List.of(4L), List.of(1L), List.of(3L)), found);
  }

  @Test
  void linesStandOneAfterTheOtherWithNullWhereTheyHaveNoCell() {
    String one = "{\"time_unix_nano\":[1,2],\"body\":[\"a]\",\"\\\"}\"],\"series\":[\"\",\"\"]}";
    String two = "{\"time_unix_nano\":[3],\"severity_number\":[9],\"series\":[\"é\"],\"attributes\":[{\"k]\":null}]}";
    String both =
        "{\"time_unix_nano\":[1,2,3],\"severity_number\":[null,null,9],\"body\":[\"a]\",\"\\\"}\",null],"
            + "\"series\":[\"\",\"\",\"é\"],\"attributes\":[null,null,{\"k]\":null}]}";
    assertEquals(List.of(List.of(5L, both, 9L, 9_000L, 500L)), coalesced(row("vm", one, 5), row("vm", two, 9)));
  }

  @Test
  void aRecordIsCompleteBeforeItIsTooLarge() {
    String times = String.join(",", IntStream.range(0, 20_000).mapToObj(n -> "1795245484412222354").toList());
    String values = String.join(",", IntStream.range(0, 20_000).mapToObj(String::valueOf).toList());
    String series = String.join(",", IntStream.range(0, 20_000).mapToObj(n -> "\"s" + n + "\"").toList());
    InternalRow[] rows = IntStream.range(0, 5).mapToObj(n -> row("vm", points(times, values, series), n)).toArray(InternalRow[]::new);
    List<List<Object>> found = coalesced(rows);
    assertEquals(List.of(0L, 1L, 2L, 3L, 4L), found.stream().map(one -> one.get(0)).toList());
    assertTrue(found.stream().allMatch(one -> one.size() == 1), "a scrape of half the size stays alone");
  }

  @Test
  void noRowsGiveNone() {
    assertEquals(List.of(), coalesced());
  }
}
