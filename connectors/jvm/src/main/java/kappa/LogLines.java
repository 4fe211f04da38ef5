package kappa;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * The log lines of a record as LogColumns has rendered them, cut into columns, for Coalescer.
 *
 * @param columns the cells of each of NAMES, without the brackets around them; null if all are null
 */
record LogLines(byte[][] columns, int count, int bytes) {

  /** The columns that lines may have. */
  static final List<String> NAMES =
      List.of(
          "time_unix_nano",
          "severity_number",
          "severity_text",
          "body",
          "template",
          "series",
          "type",
          "attributes");

  /** The lines in `json`; null if they have a column that is none of lines. */
  static LogLines of(byte[] json) {
    byte[][] columns = new byte[NAMES.size()][];
    for (int at = 0; at < json.length - 1; ) { // on the brace or comma before a name
      int nameEnd = stringEnd(json, at + 1);
      int column = NAMES.indexOf(new String(json, at + 2, nameEnd - at - 2, StandardCharsets.UTF_8));
      if (column < 0) {
        return null;
      }
      int begin = nameEnd + 3; // behind the colon and the bracket
      int end = listEnd(json, begin);
      columns[column] = Arrays.copyOfRange(json, begin, end);
      at = end + 1;
    }
    byte[] times = columns[0];
    return times == null ? null : new LogLines(columns, 1 + commas(times), json.length);
  }

  private static int commas(byte[] numbers) {
    int found = 0;
    for (byte one : numbers) {
      found += one == ',' ? 1 : 0;
    }
    return found;
  }

  /** Where the list ends whose cells begin at `at`; they contain no lists. */
  private static int listEnd(byte[] json, int at) {
    int end = at;
    while (json[end] != ']') {
      end = json[end] == '"' ? stringEnd(json, end) + 1 : end + 1;
    }
    return end;
  }

  /** Where the last quote of the string is that begins at `at`. */
  private static int stringEnd(byte[] json, int at) {
    int end = at + 1;
    while (json[end] != '"') {
      end += json[end] == '\\' ? 2 : 1;
    }
    return end;
  }

  /** The columns of the lines of several records. */
  static byte[] text(List<LogLines> records) {
    ByteArrayOutputStream text = new ByteArrayOutputStream(records.stream().mapToInt(LogLines::bytes).sum());
    char before = '{';
    for (int column = 0; column < NAMES.size(); column++) {
      int at = column;
      if (records.stream().anyMatch(one -> one.columns[at] != null)) {
        text.writeBytes((before + "\"" + NAMES.get(at) + "\":").getBytes(StandardCharsets.UTF_8));
        char gap = '[';
        for (LogLines one : records) {
          text.write(gap);
          text.writeBytes(one.cells(at));
          gap = ',';
        }
        text.write(']');
        before = ',';
      }
    }
    text.write('}');
    return text.toByteArray();
  }

  private byte[] cells(int column) {
    byte[] known = columns[column];
    return known == null ? ("null" + ",null".repeat(count - 1)).getBytes(StandardCharsets.UTF_8) : known;
  }
}
