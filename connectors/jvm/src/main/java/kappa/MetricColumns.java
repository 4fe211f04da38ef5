package kappa;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import kappa.JsonReader.Scalar;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A machine's data points as JSON in columns. A column in which all cells are null is left out.
 *
 * <p>The points stand in the order of their series, since collectors change theirs from scrape to scrape. Numbers are
 * written as they were read. What is the same at every scrape is rendered once and kept.
 */
final class MetricColumns {

  static final List<String> LABELS =
      List.of("series", "name", "unit", "type", "temporality", "monotonic", "attributes");
  private static final int BYTES = 32; // a cell's size, about

  private final Column times, values, histograms;
  private final List<Column> labels;
  private boolean isSound = true;
  private long first = Long.MAX_VALUE;
  private long last = Long.MIN_VALUE;
  private int seriesBytes, unitBytes;

  MetricColumns(List<Named> events) {
    int bytes = BYTES * events.size();
    times = new Column("time_unix_nano", bytes);
    values = new Column("value", bytes);
    histograms = new Column("histogram", bytes);
    labels = new ArrayList<>(LABELS.size());
    for (String name : LABELS) { // not by a stream, see text()
      labels.add(new Column(name, bytes));
    }
    events.sort(Comparator.comparing(event -> event.labels.series)); // as Python sorts
    events.forEach(this::add);
  }

  String text() {
    // Not by a stream: for a record of one point, that took a third of the decoder's time.
    StringBuilder text = new StringBuilder("{");
    times.appendTo(text);
    values.appendTo(text);
    histograms.appendTo(text);
    for (Column column : labels) {
      column.appendTo(text);
    }
    text.setLength(Math.max(1, text.length() - 1)); // the last comma
    return text.append('}').toString();
  }

  /** The earliest time, if each event has a time and a finite value; else null. */
  Long first() {
    return isSound ? first : null;
  }

  Long last() {
    return isSound ? last : null;
  }

  /** The length of the longest series, in bytes of UTF-8. */
  int seriesBytes() {
    return seriesBytes;
  }

  int unitBytes() {
    return unitBytes;
  }

  private void add(Named event) {
    seriesBytes = Math.max(seriesBytes, event.labels.series.numBytes());
    unitBytes = Math.max(unitBytes, event.labels.unitBytes);
    Kind kind = event.kind;
    Point point = event.point;
    addTime(point.time.time());
    if (point.hasNoValue) {
      addNone(values);
    } else if (kind.isNumber()) {
      addValue(point.number());
    } else {
      addValue(mean(point.count.integer(), point.sum.number()));
    }
    if (kind.isNumber()) {
      histograms.addNone();
    } else {
      new Histogram(histograms.next()).add(kind, point);
    }
    for (int i = 0; i < labels.size(); i++) {
      labels.get(i).add(event.labels.cells.get(i));
    }
  }

  private void addTime(Long time) {
    if (time == null) {
      addNone(times);
      return;
    }
    times.next().append(time.longValue());
    first = Math.min(first, time);
    last = Math.max(last, time);
  }

  private void addNone(Column column) {
    column.addNone();
    isSound = false;
  }

  private void addValue(Scalar value) {
    String plain = value.plain();
    if (plain == null) {
      addValue(value.number());
    } else {
      values.next().append(plain);
    }
  }

  private void addValue(Double value) {
    if (value == null) {
      addNone(values);
    } else if (Double.isFinite(value)) {
      values.next().append(value.doubleValue());
    } else {
      values.next().append('"').append(value.doubleValue()).append('"');
      isSound = false;
    }
  }

  /** The mean of a histogram's or summary's observations; 0 if there were none. */
  private static Double mean(Long count, Double total) {
    if (count != null && count == 0) {
      return 0.0;
    }
    return count == null || total == null ? null : (Double) (total / count);
  }

  /** The kinds of data, in the order in which those of one metric become events. */
  enum Kind {
    GAUGE("gauge", "gauge"),
    SUM("sum", "sum"),
    HISTOGRAM("histogram", "histogram"),
    EXPONENTIAL("exponentialHistogram", "exponential_histogram"),
    SUMMARY("summary", "summary");

    static final Map<String, Kind> BY_FIELD =
        Arrays.stream(values()).collect(Collectors.toMap(kind -> kind.field, Function.identity()));

    final String field;
    final String type;

    Kind(String field, String type) {
      this.field = field;
      this.type = type;
    }

    boolean isNumber() {
      return this == GAUGE || this == SUM;
    }
  }

  static final class Point {
    List<Entry> attributes = List.of();
    boolean hasNoValue;
    Scalar start = Scalar.NONE, time = Scalar.NONE, asDouble = Scalar.NONE, asInt = Scalar.NONE;
    Scalar count = Scalar.NONE, sum = Scalar.NONE, min = Scalar.NONE, max = Scalar.NONE;
    Scalar scale = Scalar.NONE, zeroCount = Scalar.NONE;
    List<Scalar> bounds, counts;
    Buckets positive, negative;
    List<Entry> quantiles = List.of();

    Scalar number() {
      return asDouble.token() == null ? asInt : asDouble;
    }
  }

  static final class Buckets {
    Scalar offset = Scalar.NONE;
    List<Scalar> counts;
  }

  record Entry(String key, String value) {}

  /** Entries as a map; of a key that stands twice, the first counts. */
  static Map<String, String> asMap(List<Entry> entries) {
    Map<String, String> found = new LinkedHashMap<>();
    for (Entry entry : entries) {
      if (!found.containsKey(entry.key)) {
        found.put(entry.key, entry.value);
      }
    }
    return found;
  }

  private static void quote(StringBuilder json, Map<String, String> texts) {
    json.append('{');
    String gap = "";
    for (Map.Entry<String, String> entry : texts.entrySet()) {
      JsonReader.quote(json.append(gap), entry.getKey());
      json.append(':');
      if (entry.getValue() == null) {
        json.append("null");
      } else {
        JsonReader.quote(json, entry.getValue());
      }
      gap = ",";
    }
    json.append('}');
  }

  /** What is the same of a series at every scrape: its cells as JSON in the order of LABELS, null for an absent one. */
  record Labels(UTF8String series, int unitBytes, List<String> cells) {

    record Key(
        Kind kind,
        String name,
        String unit,
        String temporality,
        boolean monotonic,
        List<Entry> attributes,
        List<Entry> identity) {}

    private static final int MOST = 65_536;
    private static final Map<Key, Labels> KNOWN = new ConcurrentHashMap<>();

    static Labels of(Key key) {
      Labels found = KNOWN.get(key);
      if (found == null) {
        if (KNOWN.size() >= MOST) {
          KNOWN.clear();
        }
        found = rendered(key);
        KNOWN.put(key, found);
      }
      return found;
    }

    private static Labels rendered(Key key) {
      boolean hasTemporality = "1".equals(key.temporality) || "2".equals(key.temporality);
      StringBuilder attributes = new StringBuilder();
      quote(attributes, asMap(key.attributes));
      String series = series(key);
      return new Labels(
          UTF8String.fromString(series),
          key.unit == null ? 0 : UTF8String.fromString(key.unit).numBytes(),
          Arrays.asList(
              quoted(series),
              quoted(key.name),
              key.unit == null || key.unit.isEmpty() ? null : quoted(key.unit),
              quoted(key.kind.type),
              hasTemporality ? quoted(key.temporality.equals("1") ? "delta" : "cumulative") : null,
              key.kind == Kind.SUM ? String.valueOf(key.monotonic) : null,
              attributes.toString()));
    }

    private static String quoted(String text) {
      StringBuilder json = new StringBuilder();
      JsonReader.quote(json, text);
      return json.toString();
    }

    /** The series' identity: `name{key=value,...}`, sorted by key; the name alone if there are no entries. */
    private static String series(Key key) {
      List<Entry> entries = new ArrayList<>(key.attributes);
      entries.addAll(key.identity);
      if (entries.isEmpty()) {
        return key.name;
      }
      // Compared as UTF-8, which is Python's order; Java's own is that of UTF-16.
      Comparator<String> order = Comparator.comparing(UTF8String::fromString);
      entries.sort(
          Comparator.comparing(Entry::key, order)
              .thenComparing(Entry::value, Comparator.nullsFirst(order)));
      return entries.stream()
          .map(entry -> entry.value == null ? entry.key : entry.key + "=" + entry.value)
          .collect(Collectors.joining(",", key.name + "{", "}"));
    }
  }

  record Named(Kind kind, Labels labels, Point point) {}

  /** One field of all events as JSON. */
  private static final class Column {

    private final String name;
    private final StringBuilder cells;
    private boolean isEmpty = true;

    Column(String name, int bytes) {
      this.name = name;
      this.cells = new StringBuilder(bytes);
    }

    /** The text to which the next cell's JSON is to be appended. */
    StringBuilder next() {
      isEmpty = false;
      return separated();
    }

    void add(String cell) {
      if (cell == null) {
        addNone();
      } else {
        next().append(cell);
      }
    }

    void addNone() {
      separated().append("null");
    }

    private StringBuilder separated() {
      return cells.isEmpty() ? cells : cells.append(',');
    }

    /** Appends the column with a comma behind it; appends nothing if all cells are null. */
    void appendTo(StringBuilder text) {
      if (!isEmpty) {
        text.append('"').append(name).append("\":[").append(cells).append("],");
      }
    }
  }

  /** Writes the field `histogram` of an event. What isn't known is absent. */
  private static final class Histogram {

    private final StringBuilder json;
    private String gap = "{";

    Histogram(StringBuilder json) {
      this.json = json;
    }

    void add(Kind kind, Point point) {
      add("count", point.count.integer());
      add("sum", point.sum.number());
      add("min", point.min.number());
      add("max", point.max.number());
      switch (kind) {
        case HISTOGRAM -> {
          add("bounds", every(point.bounds, Scalar::number));
          add("counts", every(point.counts, Scalar::integer));
        }
        case EXPONENTIAL -> addExponential(point);
        default -> addQuantiles(point.quantiles);
      }
      json.append(gap.equals("{") ? "{}" : "}");
    }

    private StringBuilder field(String name) {
      JsonReader.quote(json.append(gap), name);
      gap = ",";
      return json.append(':');
    }

    private void add(String name, Object number) {
      if (number != null) {
        field(name).append(isFinite(number) ? number : "null");
      }
    }

    private void add(String name, List<?> numbers) {
      if (numbers != null) {
        field(name)
            .append(
                numbers.stream()
                    .map(number -> number != null && isFinite(number) ? number.toString() : "null")
                    .collect(Collectors.joining(",", "[", "]")));
      }
    }

    private static boolean isFinite(Object number) {
      return !(number instanceof Double d) || Double.isFinite(d);
    }

    /** A list converted; null if one of its values can't be, as a histogram has all its buckets or none. */
    private static <T> List<T> every(List<Scalar> values, Function<Scalar, T> convert) {
      if (values == null) {
        return null;
      }
      List<T> found = new ArrayList<>();
      for (Scalar value : values) {
        T converted = convert.apply(value);
        if (converted == null && value.token() != null) {
          return null;
        }
        found.add(converted);
      }
      return found;
    }

    private void addQuantiles(List<Entry> quantiles) {
      quote(field("quantiles"), asMap(quantiles));
    }

    /**
     * Bucket i of `positive` is (base^(offset+i), base^(offset+i+1)], base = 2^(2^-scale) (OTLP); `negative` mirrors
     * it; the zero bucket takes all between the two.
     */
    private void addExponential(Point point) {
      Double scale = point.scale.number();
      double exponent = powerOfTwo(scale == null ? 0 : -scale);
      List<Long> below = counts(point.negative), above = counts(point.positive);
      List<Double> bounds = new ArrayList<>(bounds(point.negative, exponent, below.size()));
      bounds.replaceAll(bound -> -bound);
      Collections.reverse(bounds);
      bounds.addAll(bounds(point.positive, exponent, above.size()));
      List<Long> counts = new ArrayList<>(below);
      Collections.reverse(counts);
      Long zero = point.zeroCount.integer();
      counts.add(zero == null ? 0 : zero);
      counts.addAll(above);
      add("bounds", bounds);
      add("counts", counts);
    }

    private static List<Long> counts(Buckets side) {
      List<Long> found = side == null ? null : every(side.counts, Scalar::integer);
      return found == null ? List.of() : found;
    }

    private static List<Double> bounds(Buckets side, double exponent, int size) {
      Double offset = side == null ? null : side.offset.number();
      List<Double> found = new ArrayList<>();
      for (int i = 0; i < size; i++) {
        found.add(powerOfTwo(exponent * ((offset == null ? 0 : offset) + i)));
      }
      return found;
    }

    /** 2^exponent, at most the largest double. */
    private static double powerOfTwo(double exponent) {
      return exponent < 1024 ? Math.pow(2, exponent) : Double.MAX_VALUE;
    }
  }
}
