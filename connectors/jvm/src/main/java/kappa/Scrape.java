package kappa;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * The data points of a record as a decoder rendered them, cut into times, values and labels, for Coalescer.
 *
 * @param timesEnd where the list of times ends in `json`
 * @param valuesEnd where the list of values ends
 */
record Scrape(byte[] json, int timesEnd, int valuesEnd) {

  private static final byte[] TIMES = bytes("{\"time_unix_nano\":[");
  private static final byte[] VALUES = bytes("],\"value\":[");
  private static final byte[] ROWS = bytes("],\"labels\":[");
  private static final byte[] LABELS = bytes("],\"series\":[");

  /** The scrape in `json`; null if its points have more than a time, a value and labels, such as a histogram. */
  static Scrape of(byte[] json) {
    int times = end(json, TIMES.length);
    int values = end(json, times + VALUES.length);
    boolean isPlain = has(json, 0, TIMES) && has(json, times, VALUES) && has(json, values, LABELS);
    return isPlain ? new Scrape(json, times, values) : null;
  }

  private static int end(byte[] json, int from) {
    int at = from;
    while (at < json.length && json[at] != ']') {
      at++;
    }
    return at;
  }

  private static boolean has(byte[] json, int at, byte[] part) {
    int end = at + part.length;
    return end <= json.length && Arrays.equals(json, at, end, part, 0, part.length);
  }

  int bytes() {
    return valuesEnd;
  }

  Labels labels() {
    return Labels.of(json, valuesEnd, points());
  }

  private int points() {
    int points = 1;
    for (int at = TIMES.length; at < timesEnd; at++) {
      points += json[at] == ',' ? 1 : 0;
    }
    return points;
  }

  void appendTo(ByteArrayOutputStream times, ByteArrayOutputStream values) {
    append(times, TIMES.length, timesEnd);
    append(values, timesEnd + VALUES.length, valuesEnd);
  }

  private void append(ByteArrayOutputStream to, int begin, int end) {
    if (to.size() > 0) {
      to.write(',');
    }
    to.write(json, begin, end - begin);
  }

  /** The columns of the points of several scrapes; `rows` says which row of `labels` each of them has. */
  static byte[] text(ByteArrayOutputStream times, ByteArrayOutputStream values, int[] rows, byte[] labels) {
    ByteArrayOutputStream text = new ByteArrayOutputStream(times.size() + values.size() + 5 * rows.length + labels.length);
    text.writeBytes(TIMES);
    text.writeBytes(times.toByteArray());
    text.writeBytes(VALUES);
    text.writeBytes(values.toByteArray());
    if (!IntStream.range(0, rows.length).allMatch(at -> rows[at] == at)) {
      text.writeBytes(ROWS);
      text.writeBytes(bytes(Arrays.stream(rows).mapToObj(Integer::toString).collect(Collectors.joining(","))));
    }
    text.writeBytes(labels);
    return text.toByteArray();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  /**
   * The labels of all points of a scrape. They stand in `json` from `begin`, the bracket before them, up to its end.
   *
   * <p>Two are equal if their bytes are.
   */
  record Labels(byte[] json, int begin, int points, int hash) {

    static Labels of(byte[] json, int begin, int points) {
      int hash = Murmur3_x86_32.hashUnsafeBytes2(json, Platform.BYTE_ARRAY_OFFSET + begin, json.length - begin, 0);
      return new Labels(json, begin, points, hash);
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Labels labels
          && hash == labels.hash
          && Arrays.equals(json, begin, json.length, labels.json, labels.begin, labels.json.length);
    }

    @Override
    public int hashCode() {
      return hash;
    }

    int bytes() {
      return json.length - begin;
    }

    byte[] text() {
      return Arrays.copyOfRange(json, begin, json.length);
    }

    /** The same labels in bytes of their own, without what stands before them. */
    Labels copy() {
      return new Labels(text(), 0, points, hash);
    }

    /** The labels of each point as JSON, in the order of MetricColumns.LABELS; each character is a byte of UTF-8. */
    String[][] rows() {
      String[][] rows = new String[points][MetricColumns.LABELS.size()];
      for (String[] row : rows) {
        Arrays.fill(row, "null");
      }
      new Cells(new String(json, begin, bytes(), StandardCharsets.ISO_8859_1)).into(rows);
      return rows;
    }

    /** The bytes of labels that are given as `rows` returns them. */
    static byte[] text(Collection<String[]> rows) {
      StringBuilder text = new StringBuilder();
      for (int at = 0; at < MetricColumns.LABELS.size(); at++) {
        int column = at;
        List<String> cells = rows.stream().map(row -> row[column]).toList();
        if (!cells.stream().allMatch("null"::equals)) {
          text.append("],\"").append(MetricColumns.LABELS.get(at)).append("\":[").append(String.join(",", cells));
        }
      }
      return Scrape.bytes(text.append("]}").toString());
    }
  }

  /** Reads `],"name":[cell,cell],"name":[...]}`, whose cells contain no lists. */
  private static final class Cells {
    private final String text;
    private int at;

    Cells(String text) {
      this.text = text;
    }

    void into(String[][] rows) {
      while (text.startsWith("],\"", at)) {
        int end = text.indexOf('"', at + 3);
        int column = MetricColumns.LABELS.indexOf(text.substring(at + 3, end));
        at = end + 2; // on the bracket
        for (String[] row : rows) {
          row[column] = cell();
        }
      }
    }

    /** The cell that follows the comma or bracket at the current place. */
    private String cell() {
      int begin = ++at;
      for (int depth = 0; depth > 0 || (text.charAt(at) != ',' && text.charAt(at) != ']'); at++) {
        switch (text.charAt(at)) {
          case '{' -> depth++;
          case '}' -> depth--;
          case '"' -> at = stringEnd();
          default -> {}
        }
      }
      return text.substring(begin, at);
    }

    private int stringEnd() {
      int end = at + 1;
      while (text.charAt(end) != '"') {
        end += text.charAt(end) == '\\' ? 2 : 1;
      }
      return end;
    }
  }
}
