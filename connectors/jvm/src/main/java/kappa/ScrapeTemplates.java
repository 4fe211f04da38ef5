package kappa;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Templates of the records that OtlpMetricsJson has read. The scrapes of a machine differ in their numbers only, so a
 * template holds all else: the text between the numbers, and the rest of the decoded row.
 *
 * <p>A record that fits a known template needs no JSON parser: the text between its numbers is compared, and the
 * numbers are copied in the row's order. A record that differs anywhere is left to the parser. A number that the parser
 * would write differently (one with an exponent) is written in the same way here.
 */
final class ScrapeTemplates {

  /** Where the numbers of a data point begin in the record, at their quotes if they have any; -1 for an absent one. */
  record Place(int start, int time, int value) {}

  // What stands before a record's first number, which is a startTimeUnixNano or a timeUnixNano.
  private static final byte[] MARK = ascii("imeUnixNano\":\"");
  private static final byte[] TIMES = ascii("{\"time_unix_nano\":[");
  private static final byte[] VALUES = ascii("],\"value\":[");

  // A number of at most so many characters is copied as it was read: without an exponent, it is a finite double.
  static final int LONGEST = 300;

  private static final int LONGEST_LONG = 19;
  private static final int LONGEST_DOUBLE = 24;

  // When the templates exceed it, all are evicted; those in use come back within two scrapes.
  private static final long MOST_BYTES = Runtime.getRuntime().maxMemory() / 8;
  private static final AtomicLong BYTES = new AtomicLong();
  private static final int BYTES_OF_ENTRY = 128; // of a map, about

  // The key is what a record begins with, up to its first number.
  private static final Map<UTF8String, Template> KNOWN = new ConcurrentHashMap<>();
  private static final Map<UTF8String, IntBuffer> ORDERS = new ConcurrentHashMap<>();
  // Parts that are equal in the templates of several machines, so that each is kept once.
  private static final Map<Object, Object> SHARED = new ConcurrentHashMap<>();

  private ScrapeTemplates() {}

  /** The row of a record, or null if it fits no known template. */
  static Row row(byte[] json) {
    int first = first(json);
    Template template = first < 0 ? null : KNOWN.get(UTF8String.fromBytes(json, 0, first));
    return template == null ? null : template.row(json, first);
  }

  /**
   * Keep the template of a record that has one resource and only ASCII characters.
   *
   * @param row what the parser made of it
   * @param places its data points, in the row's order
   */
  static void remember(byte[] json, Row row, List<Place> places) {
    int first = first(json);
    if (first < 0 || places.isEmpty() || places.stream().anyMatch(place -> place.time < 0 || place.value < 0)) {
      return;
    }
    int[] numbers =
        places.stream()
            .flatMapToInt(place -> IntStream.of(place.start, place.time, place.value))
            .filter(at -> at >= 0)
            .map(at -> begin(json, at))
            .sorted()
            .toArray();
    UTF8String begin = UTF8String.fromBytes(Arrays.copyOf(json, first));
    IntBuffer times = indices(numbers, json, places, Place::time);
    if (numbers[0] != first || !isSteady(begin, times)) {
      return;
    }
    Pattern pattern = Pattern.of(json, numbers, times, indices(numbers, json, places, Place::value));
    Template template = pattern == null ? null : Template.of(row, pattern);
    if (template != null && isSame(row, template.row(json, first))) {
      account(2L * first + BYTES_OF_ENTRY); // the machine's attributes are as long again
      KNOWN.put(begin, template);
      ORDERS.remove(begin);
    }
  }

  /** Whether the record before had its points in the same order: some collectors change it at each scrape. */
  private static boolean isSteady(UTF8String begin, IntBuffer order) {
    IntBuffer last = ORDERS.put(begin, shared(order, Integer.BYTES * order.capacity()));
    if (last == null) {
      account(begin.numBytes() + BYTES_OF_ENTRY);
    }
    return order.equals(last);
  }

  /** Whether the template gives the same row as the parser; it doesn't if numbers were written with escapes. */
  private static boolean isSame(Row read, Row own) {
    return own != null
        && own.get(3).equals(UTF8String.fromString(read.getString(3)))
        && own.get(4).equals(read.get(4))
        && own.get(5).equals(read.get(5));
  }

  @SuppressWarnings("unchecked")
  private static <T> T shared(T one, int bytes) {
    Object known = SHARED.putIfAbsent(one, one);
    if (known != null) {
      return (T) known;
    }
    account(bytes + BYTES_OF_ENTRY);
    return one;
  }

  private static void account(long bytes) {
    if (BYTES.addAndGet(bytes) > MOST_BYTES) {
      KNOWN.clear();
      ORDERS.clear();
      SHARED.clear();
      BYTES.set(0);
    }
  }

  /** What each scrape of a machine gives beside its numbers; `tail` is the JSON of all columns after the values. */
  private record Template(
      UTF8String machine,
      Map<UTF8String, UTF8String> resource,
      Pattern pattern,
      UTF8String tail,
      Integer seriesBytes,
      Integer unitBytes) {

    static Template of(Row row, Pattern pattern) {
      Map<UTF8String, UTF8String> resource = new LinkedHashMap<>();
      Map<String, String> attributes = row.getAs(2);
      attributes.forEach((key, value) -> resource.put(UTF8String.fromString(key), UTF8String.fromString(value)));
      String json = row.getString(3);
      UTF8String tail = UTF8String.fromString(json.substring(json.indexOf(']', json.indexOf(']') + 1)));
      return new Template(
          UTF8String.fromString(row.getString(1)),
          resource,
          pattern,
          shared(tail, tail.numBytes()),
          row.getAs(8),
          row.getAs(9));
    }

    Row row(byte[] json, int first) {
      int[] numbers = pattern.numbers(json, first);
      if (numbers == null) {
        return null;
      }
      long earliest = Long.MAX_VALUE;
      long latest = Long.MIN_VALUE;
      for (int index : pattern.times.array()) {
        long time = time(json, numbers[2 * index], numbers[2 * index + 1]);
        if (time <= 0) {
          return null;
        }
        earliest = Math.min(earliest, time);
        latest = Math.max(latest, time);
      }
      UTF8String columns = columns(json, numbers);
      return columns == null
          ? null
          : RowFactory.create(
              0, machine, resource, columns, earliest, latest, null, null, seriesBytes, unitBytes);
    }

    /** The events as JSON in columns; null if a value isn't finite. */
    private UTF8String columns(byte[] json, int[] numbers) {
      ByteBuffer out = ByteBuffer.allocate(room(numbers)).put(TIMES);
      for (int index : pattern.times.array()) {
        put(out, json, numbers[2 * index], numbers[2 * index + 1]);
      }
      out.position(out.position() - 1).put(VALUES);
      for (int index : pattern.values.array()) {
        if (!putValue(out, json, numbers[2 * index], numbers[2 * index + 1])) {
          return null;
        }
      }
      out.position(out.position() - 1).put(tail.getBytes());
      return UTF8String.fromBytes(out.array(), 0, out.position());
    }

    private int room(int[] numbers) {
      int room = TIMES.length + VALUES.length + tail.numBytes() + pattern.times.capacity() * (LONGEST_LONG + 1);
      for (int index : pattern.values.array()) {
        room += Math.max(numbers[2 * index + 1] - numbers[2 * index], LONGEST_DOUBLE) + 1;
      }
      return room;
    }

    private static boolean putValue(ByteBuffer out, byte[] json, int from, int to) {
      if (!hasExponent(json, from, to)) {
        put(out, json, from, to);
        return true;
      }
      double value = Double.parseDouble(new String(json, from, to - from, StandardCharsets.US_ASCII));
      byte[] written = ascii(Double.toString(value));
      put(out, written, 0, written.length);
      return Double.isFinite(value);
    }

    private static void put(ByteBuffer out, byte[] bytes, int from, int to) {
      out.put(bytes, from, to - from).put((byte) ',');
    }
  }

  /**
   * What is the same in the records of several machines.
   *
   * @param texts the texts that follow each number, one after the other
   * @param ends where each of them ends in `texts`
   * @param times which of the record's numbers are times, in the row's order
   * @param values which of them are values, in the row's order
   */
  private record Pattern(UTF8String texts, IntBuffer ends, IntBuffer times, IntBuffer values) {

    static Pattern of(byte[] json, int[] numbers, IntBuffer times, IntBuffer values) {
      ByteBuffer texts = ByteBuffer.allocate(json.length);
      int[] ends = new int[numbers.length];
      for (int i = 0; i < numbers.length; i++) {
        int from = end(json, numbers[i]);
        int to = i + 1 < numbers.length ? numbers[i + 1] : json.length;
        if (from < 0) {
          return null;
        }
        ends[i] = texts.put(json, from, to - from).position();
      }
      UTF8String own = UTF8String.fromBytes(Arrays.copyOf(texts.array(), texts.position()));
      Pattern pattern = new Pattern(own, IntBuffer.wrap(ends), times, values);
      return shared(pattern, own.numBytes() + 3 * Integer.BYTES * ends.length);
    }

    /** Where each number begins and ends, by turns; null if the text between them differs. */
    int[] numbers(byte[] json, int first) {
      byte[] same = texts.getBytes();
      int[] found = new int[2 * ends.capacity()];
      int at = first;
      int from = 0;
      for (int i = 0; i < ends.capacity(); i++) {
        int end = end(json, at);
        int to = ends.get(i);
        int next = end + to - from;
        if (end < 0 || next > json.length || !Arrays.equals(json, end, next, same, from, to)) {
          return null;
        }
        found[2 * i] = at;
        found[2 * i + 1] = end;
        at = next;
        from = to;
      }
      return at == json.length ? found : null;
    }
  }

  /** The indices in `numbers` of one field of the places. */
  private static IntBuffer indices(int[] numbers, byte[] json, List<Place> places, ToIntFunction<Place> field) {
    return IntBuffer.wrap(
        places.stream()
            .mapToInt(place -> Arrays.binarySearch(numbers, begin(json, field.applyAsInt(place))))
            .toArray());
  }

  /** Where the digits or sign of a number begin, which may be in quotes. */
  private static int begin(byte[] json, int at) {
    return json[at] == '"' ? at + 1 : at;
  }

  /** Where a record's first number begins, -1 if it has none. */
  private static int first(byte[] json) {
    for (int end = MARK.length; end < json.length; end++) {
      if (json[end - 1] == '"' && Arrays.equals(json, end - MARK.length, end, MARK, 0, MARK.length)) {
        return end;
      }
    }
    return -1;
  }

  /** The end of the JSON number that begins at `from`, of an integer if it is in quotes; -1 if there is none. */
  private static int end(byte[] json, int from) {
    int whole = from < json.length && json[from] == '-' ? from + 1 : from;
    int end = digits(json, whole);
    if (end == whole || json[whole] == '0' && end > whole + 1) {
      return -1;
    }
    if (json[from - 1] != '"') {
      end = exponent(json, fraction(json, end));
    }
    return end - from > LONGEST ? -1 : end;
  }

  private static int fraction(byte[] json, int from) {
    return from < json.length && json[from] == '.' ? someDigits(json, from + 1) : from;
  }

  private static int exponent(byte[] json, int from) {
    if (from < 0 || from == json.length || json[from] != 'e' && json[from] != 'E') {
      return from;
    }
    boolean isSigned = from + 1 < json.length && (json[from + 1] == '-' || json[from + 1] == '+');
    return someDigits(json, isSigned ? from + 2 : from + 1);
  }

  private static int someDigits(byte[] json, int from) {
    int end = digits(json, from);
    return end > from ? end : -1;
  }

  private static int digits(byte[] json, int from) {
    int end = from;
    while (end < json.length && json[end] >= '0' && json[end] <= '9') {
      end++;
    }
    return end;
  }

  private static boolean hasExponent(byte[] json, int from, int to) {
    for (int at = from; at < to; at++) {
      if (json[at] == 'e' || json[at] == 'E') {
        return true;
      }
    }
    return false;
  }

  /** The number as a long; less than 1 if it isn't a positive one. */
  private static long time(byte[] json, int from, int to) {
    if (to - from > LONGEST_LONG) {
      return -1;
    }
    long time = 0;
    for (int at = from; at < to; at++) {
      if (json[at] < '0' || json[at] > '9') {
        return -1;
      }
      time = 10 * time + json[at] - '0';
    }
    return time; // of 19 digits it may have become negative
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
