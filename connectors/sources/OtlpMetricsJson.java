package kappa;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The decoder of otlp_metrics_json.py, which has the mapping: a record's bytes to one row a resource.
 *
 * <p>In the JVM, as nearly all data points come this way, and to take them to Python costs more than to decode them.
 * Numbers are written as they were read; what is the same at every scrape is rendered once.
 */
public final class OtlpMetricsJson implements UDF1<byte[], List<Row>> {

  private static final JsonFactory JSON =
      JsonFactory.builder()
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNumberLength(Integer.MAX_VALUE)
                  .maxStringLength(Integer.MAX_VALUE)
                  .maxNameLength(Integer.MAX_VALUE)
                  .build())
          .build();

  // What identifies a machine, and what tells apart the series of one machine: as in otlp.py.
  private static final List<String> MACHINE_KEYS =
      List.of("host.name", "k8s.pod.name", "service.instance.id", "host.id", "container.id");
  private static final List<String> SERIES_KEYS =
      List.of("service.name", "service.instance.id", "k8s.pod.name", "container.name");

  /** Columns: batch, machine, resource, json, first_unix_nano, last_unix_nano, error, count. */
  @Override
  public List<Row> call(byte[] value) throws IOException {
    Row known = value == null ? null : OtlpMetricsForms.row(value);
    if (known != null) {
      return List.of(known);
    }
    try {
      return rows(value == null ? new byte[0] : value);
    } catch (UnusableException unusable) {
      return List.of(failed(unusable.getMessage()));
    }
  }

  private static List<Row> rows(byte[] value) throws IOException, UnusableException {
    String text = new String(value, StandardCharsets.UTF_8);
    List<Resource> resources = read(text);
    List<Row> rows = new ArrayList<>();
    for (Resource resource : resources) {
      rows.add(resource.row(rows.size()));
    }
    if (rows.size() == 1 && text.length() == value.length) { // each character is one byte: places are the same in both
      OtlpMetricsForms.remember(value, rows.get(0), resources.get(0).places);
    }
    return rows.isEmpty() ? List.of(failed("no_events")) : rows;
  }

  private static Row failed(String error) {
    return RowFactory.create(null, null, null, null, null, null, error, null);
  }

  private static List<Resource> read(String text) throws IOException, UnusableException {
    try (JsonParser parser = JSON.createParser(text)) {
      if (parser.nextToken() == null) {
        throw new UnusableException("not_json");
      }
      List<Resource> found = null;
      try {
        found = new Reader(parser).request();
      } catch (ShapeException other) {
        while (!parser.getParsingContext().inRoot()) {
          parser.nextToken(); // it may not even be JSON
        }
      }
      if (parser.nextToken() != null) {
        throw new UnusableException("not_json");
      }
      if (found == null) {
        throw new UnusableException("not_otlp");
      }
      return found;
    } catch (JsonParseException | StreamConstraintsException malformed) {
      throw new UnusableException("not_json");
    }
  }

  /** A record of which nothing can be used; its text is the code. */
  private static final class UnusableException extends Exception {
    UnusableException(String code) {
      super(code, null, false, false);
    }
  }

  /** JSON of another shape than OTLP's. */
  private static final class ShapeException extends IOException {}

  /** The kinds of data, in the order in which those of a metric are told. */
  private enum Kind {
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

  private static final class Request {
    List<Resource> resources;
  }

  private static final class Resource {
    List<Entry> entries = List.of();
    List<Metric> metrics = List.of();
    List<OtlpMetricsForms.Place> places = List.of(); // of the points told, in their order

    Row row(int number) {
      Map<String, String> attributes = asMap(entries);
      String machine = machine(attributes);
      int count = metrics.stream().mapToInt(Metric::size).sum();
      if (count == 0) {
        return RowFactory.create(number, machine, attributes, null, null, null, "no_events", null);
      }
      if (machine == null) {
        return RowFactory.create(number, null, attributes, null, null, null, "no_machine", (long) count);
      }
      List<Named> events = named(identity(attributes, machine));
      Rendering json = new Rendering(events);
      places = events.stream().map(event -> event.point.place()).toList();
      return RowFactory.create(number, machine, attributes, json.text(), json.first(), json.last(), null, null);
    }

    private static String machine(Map<String, String> attributes) {
      return MACHINE_KEYS.stream()
          .map(attributes::get)
          .filter(found -> found != null && !found.isEmpty() && !found.equals("-"))
          .findFirst()
          .orElse(null);
    }

    private List<Named> named(List<Entry> identity) {
      List<Named> found = new ArrayList<>();
      for (Metric metric : metrics) {
        for (Kind kind : Kind.values()) {
          Data data = metric.data[kind.ordinal()];
          if (data != null) {
            for (Point point : data.points) {
              found.add(new Named(kind, Labels.of(kind, metric, data, point.attributes, identity), point));
            }
          }
        }
      }
      return found;
    }

    private static List<Entry> identity(Map<String, String> attributes, String machine) {
      return SERIES_KEYS.stream()
          .map(key -> new Entry(key, attributes.get(key)))
          .filter(entry -> entry.value != null && !entry.value.equals(machine))
          .toList();
    }
  }

  private static final class Scope {
    List<Metric> metrics = List.of();
  }

  private static final class Metric {
    String name = "";
    String unit;
    final Data[] data = new Data[Kind.values().length];

    int size() {
      int size = 0;
      for (Data one : data) {
        size += one == null ? 0 : one.points.size();
      }
      return size;
    }
  }

  private static final class Data {
    List<Point> points = List.of();
    String temporality;
    boolean monotonic;
  }

  private static final class Point {
    List<Entry> attributes = List.of();
    boolean hasNoValue;
    Scalar start = Scalar.NONE, time = Scalar.NONE, asDouble = Scalar.NONE, asInt = Scalar.NONE;
    Scalar count = Scalar.NONE, sum = Scalar.NONE, min = Scalar.NONE, max = Scalar.NONE;
    Scalar scale = Scalar.NONE, zeroCount = Scalar.NONE;
    List<Scalar> bounds, counts;
    Buckets positive, negative;
    List<Entry> quantiles = List.of();

    Scalar number() {
      return asDouble.token == null ? asInt : asDouble;
    }

    OtlpMetricsForms.Place place() {
      return new OtlpMetricsForms.Place(start.at, time.at, number().at);
    }
  }

  private static final class Buckets {
    Scalar offset = Scalar.NONE;
    List<Scalar> counts;
  }

  private record Entry(String key, String value) {}

  /** Entries as a map; of a key that stands twice, the first counts. */
  private static Map<String, String> asMap(List<Entry> entries) {
    Map<String, String> found = new LinkedHashMap<>();
    for (Entry entry : entries) {
      if (!found.containsKey(entry.key)) {
        found.put(entry.key, entry.value);
      }
    }
    return found;
  }

  /**
   * A JSON value that should be a number. Its text is null if it can't be one, its token if there is none; `at` is
   * where it begins, -1 if it can't be one.
   */
  private record Scalar(String text, JsonToken token, int at) {

    static final Scalar NONE = new Scalar(null, null, -1);

    /** A 64-bit integer from a JSON number or its digits; null if it is none. */
    Long integer() {
      if (text == null || token == JsonToken.VALUE_NUMBER_FLOAT) {
        return null;
      }
      try {
        return Long.valueOf(isString() ? text.strip() : text);
      } catch (NumberFormatException other) {
        return null;
      }
    }

    /** A double from a JSON number or its text, NaN and infinities too; null if it is none. */
    Double number() {
      if (text == null) {
        return null;
      }
      if (!isString()) {
        return Double.valueOf(text);
      }
      String digits = text.strip().toLowerCase();
      return switch (digits) {
        case "nan", "+nan", "-nan" -> Double.NaN;
        case "inf", "+inf", "infinity", "+infinity" -> Double.POSITIVE_INFINITY;
        case "-inf", "-infinity" -> Double.NEGATIVE_INFINITY;
        default -> digits.matches("[0-9.e+-]+") ? parsed(digits) : null; // Java also knows "1f" and "0x1p3"
      };
    }

    private static Double parsed(String digits) {
      try {
        return Double.valueOf(digits);
      } catch (NumberFormatException other) {
        return null;
      }
    }

    /** Its own text if that is beyond doubt the JSON of a finite number, else null. */
    String plain() {
      if (text == null || text.length() > OtlpMetricsForms.LONGEST) {
        return null;
      }
      int first = text.startsWith("-") ? 1 : 0;
      if (isString() && (text.length() == first || text.charAt(first) == '0' && text.length() > first + 1)) {
        return null;
      }
      for (int at = first; at < text.length(); at++) {
        char c = text.charAt(at);
        if ((c < '0' || c > '9') && (c != '.' || isString())) {
          return null;
        }
      }
      return text;
    }

    private boolean isString() {
      return token == JsonToken.VALUE_STRING;
    }
  }

  /**
   * Reads a request. A field that is null is absent, one that is unknown is left out, and of one that stands twice the
   * last counts.
   */
  private static final class Reader {

    private static final List<String> VALUES =
        List.of("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue");

    private final JsonParser in;

    Reader(JsonParser in) {
      this.in = in;
    }

    private interface Fields<T> {
      /** Read the value of a field, which comes next, or skip it. */
      void read(T into, String field) throws IOException;
    }

    /** The present token is its first. */
    List<Resource> request() throws IOException {
      Request found = new Request();
      object(found, this::requestField);
      if (found.resources == null) {
        throw new ShapeException();
      }
      return found.resources;
    }

    private void requestField(Request into, String field) throws IOException {
      if (field.equals("resourceMetrics")) {
        into.resources = in.nextToken() == JsonToken.VALUE_NULL ? null : objects(Resource::new, this::resource);
      } else {
        skip();
      }
    }

    private void resource(Resource into, String field) throws IOException {
      switch (field) {
        case "resource" -> {
          into.entries = List.of();
          in.nextToken();
          object(into, this::resourceField);
        }
        case "scopeMetrics" -> {
          in.nextToken();
          into.metrics =
              objects(Scope::new, this::scope).stream().flatMap(scope -> scope.metrics.stream()).toList();
        }
        default -> skip();
      }
    }

    private void resourceField(Resource into, String field) throws IOException {
      if (field.equals("attributes")) {
        into.entries = entries();
      } else {
        skip();
      }
    }

    private void scope(Scope into, String field) throws IOException {
      if (field.equals("metrics")) {
        in.nextToken();
        into.metrics = objects(Metric::new, this::metric);
      } else {
        skip();
      }
    }

    private void metric(Metric into, String field) throws IOException {
      Kind kind = Kind.BY_FIELD.get(field);
      if (kind != null) {
        into.data[kind.ordinal()] = in.nextToken() == JsonToken.VALUE_NULL ? null : data(kind);
        return;
      }
      switch (field) {
        case "name" -> {
          String name = nextText();
          into.name = name == null ? "" : name;
        }
        case "unit" -> into.unit = nextText();
        default -> skip();
      }
    }

    private Data data(Kind kind) throws IOException {
      Data found = new Data();
      object(
          found,
          (into, field) -> {
            switch (field) {
              case "dataPoints" -> {
                in.nextToken();
                into.points = objects(Point::new, kind.isNumber() ? this::number : this::spread);
              }
              case "aggregationTemporality" -> into.temporality = nextText();
              case "isMonotonic" -> monotonic(into, kind);
              default -> skip();
            }
          });
      return found;
    }

    private void monotonic(Data into, Kind kind) throws IOException {
      if (kind == Kind.SUM) {
        into.monotonic = nextBoolean();
      } else {
        skip();
      }
    }

    private void number(Point into, String field) throws IOException {
      switch (field) {
        case "asDouble" -> into.asDouble = nextScalar();
        case "asInt" -> into.asInt = nextScalar();
        default -> point(into, field);
      }
    }

    private void point(Point into, String field) throws IOException {
      switch (field) {
        case "attributes" -> into.attributes = entries();
        case "startTimeUnixNano" -> into.start = nextScalar();
        case "timeUnixNano" -> into.time = nextScalar();
        case "flags" -> into.hasNoValue = "1".equals(nextText());
        default -> skip();
      }
    }

    /** A data point of any kind that stands for many observations. */
    private void spread(Point into, String field) throws IOException {
      switch (field) {
        case "count" -> into.count = nextScalar();
        case "sum" -> into.sum = nextScalar();
        case "min" -> into.min = nextScalar();
        case "max" -> into.max = nextScalar();
        case "explicitBounds" -> into.bounds = scalars();
        case "bucketCounts" -> into.counts = scalars();
        case "scale" -> into.scale = nextScalar();
        case "zeroCount" -> into.zeroCount = nextScalar();
        case "positive" -> into.positive = buckets();
        case "negative" -> into.negative = buckets();
        case "quantileValues" -> {
          in.nextToken();
          into.quantiles = objects(Pair::new, this::quantile).stream().map(pair -> pair.entry("0")).toList();
        }
        default -> point(into, field);
      }
    }

    private Buckets buckets() throws IOException {
      Buckets found = new Buckets();
      in.nextToken();
      object(
          found,
          (into, field) -> {
            switch (field) {
              case "offset" -> into.offset = nextScalar();
              case "bucketCounts" -> into.counts = scalars();
              default -> skip();
            }
          });
      return found;
    }

    private static final class Pair {
      String key, value;
      int rank;

      Entry entry(String nameless) {
        return new Entry(key == null ? nameless : key, value);
      }
    }

    private void quantile(Pair into, String field) throws IOException {
      switch (field) {
        case "quantile" -> into.key = nextText();
        case "value" -> into.value = nextText();
        default -> skip();
      }
    }

    /** OTLP's attributes as text, in their order. */
    private List<Entry> entries() throws IOException {
      JsonToken token = in.nextToken();
      if (token == JsonToken.VALUE_NULL) {
        return List.of();
      }
      if (token != JsonToken.START_ARRAY) {
        throw new ShapeException();
      }
      List<Entry> found = new ArrayList<>(4);
      while ((token = in.nextToken()) != JsonToken.END_ARRAY) {
        if (token != JsonToken.START_OBJECT) {
          throw new ShapeException();
        }
        Pair pair = new Pair();
        object(pair, this::entry);
        found.add(pair.entry(""));
      }
      return found;
    }

    private void entry(Pair into, String field) throws IOException {
      switch (field) {
        case "key" -> into.key = nextText();
        case "value" -> {
          into.value = null;
          into.rank = VALUES.size();
          in.nextToken();
          object(into, this::anyValue);
        }
        default -> skip();
      }
    }

    /** An AnyValue as text: a string as it is, arrays and key-value lists in their JSON. */
    private void anyValue(Pair into, String field) throws IOException {
      int rank = VALUES.indexOf(field);
      if (rank < 0) {
        skip();
        return;
      }
      String text = nextText();
      if (text != null && rank <= into.rank) {
        into.value = text;
        into.rank = rank;
      }
    }

    /** The objects of the list that begins at the present token; a null among them is an empty one. */
    private <T> List<T> objects(Supplier<T> make, Fields<T> fields) throws IOException {
      if (in.currentToken() == JsonToken.VALUE_NULL) {
        return List.of();
      }
      if (in.currentToken() != JsonToken.START_ARRAY) {
        throw new ShapeException();
      }
      List<T> found = new ArrayList<>();
      while (in.nextToken() != JsonToken.END_ARRAY) {
        T one = make.get();
        object(one, fields);
        found.add(one);
      }
      return found;
    }

    /** The object that begins at the present token; null is an empty one. */
    private <T> void object(T into, Fields<T> fields) throws IOException {
      if (in.currentToken() == JsonToken.VALUE_NULL) {
        return;
      }
      if (in.currentToken() != JsonToken.START_OBJECT) {
        throw new ShapeException();
      }
      while (in.nextToken() == JsonToken.FIELD_NAME) {
        fields.read(into, in.currentName());
      }
    }

    private List<Scalar> scalars() throws IOException {
      JsonToken token = in.nextToken();
      if (token == JsonToken.VALUE_NULL) {
        return null;
      }
      if (token != JsonToken.START_ARRAY) {
        throw new ShapeException();
      }
      List<Scalar> found = new ArrayList<>();
      while (in.nextToken() != JsonToken.END_ARRAY) {
        found.add(scalar());
      }
      return found;
    }

    private Scalar nextScalar() throws IOException {
      in.nextToken();
      return scalar();
    }

    private Scalar scalar() throws IOException {
      JsonToken token = in.currentToken();
      return switch (token) {
        case VALUE_NULL -> Scalar.NONE;
        case VALUE_STRING, VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> new Scalar(in.getText(), token, at());
        default -> {
          in.skipChildren();
          yield new Scalar(null, token, -1);
        }
      };
    }

    private int at() {
      return (int) in.currentTokenLocation().getCharOffset();
    }

    private boolean nextBoolean() throws IOException {
      return switch (in.nextToken()) {
        case VALUE_TRUE -> true;
        case VALUE_FALSE, VALUE_NULL -> false;
        default -> throw new ShapeException();
      };
    }

    /** A JSON value as text: a string as it is, anything else as its JSON; null for null. */
    private String nextText() throws IOException {
      return switch (in.nextToken()) {
        case VALUE_NULL -> null;
        case START_ARRAY, START_OBJECT -> {
          StringBuilder json = new StringBuilder();
          structure(json);
          yield json.toString();
        }
        default -> in.getText();
      };
    }

    private void structure(StringBuilder json) throws IOException {
      switch (in.currentToken()) {
        case START_OBJECT -> {
          json.append('{');
          for (String gap = ""; in.nextToken() == JsonToken.FIELD_NAME; gap = ",") {
            quote(json.append(gap), in.currentName());
            json.append(':');
            in.nextToken();
            structure(json);
          }
          json.append('}');
        }
        case START_ARRAY -> {
          json.append('[');
          for (String gap = ""; in.nextToken() != JsonToken.END_ARRAY; gap = ",") {
            json.append(gap);
            structure(json);
          }
          json.append(']');
        }
        case VALUE_STRING -> quote(json, in.getText());
        default -> json.append(in.getText());
      }
    }

    private void skip() throws IOException {
      in.nextToken();
      in.skipChildren();
    }
  }

  private static void quote(StringBuilder json, String text) {
    json.append('"');
    JsonStringEncoder.getInstance().quoteAsString(text, json);
    json.append('"');
  }

  private static void quote(StringBuilder json, Map<String, String> texts) {
    json.append('{');
    String gap = "";
    for (Map.Entry<String, String> entry : texts.entrySet()) {
      quote(json.append(gap), entry.getKey());
      json.append(':');
      if (entry.getValue() == null) {
        json.append("null");
      } else {
        quote(json, entry.getValue());
      }
      gap = ",";
    }
    json.append('}');
  }

  /** What is the same of a series at every scrape: its JSON in the order of LABELS, null where there is none. */
  private record Labels(UTF8String series, List<String> cells) {

    private record Key(
        Kind kind,
        String name,
        String unit,
        String temporality,
        boolean monotonic,
        List<Entry> attributes,
        List<Entry> identity) {}

    private static final int MOST = 65_536;
    private static final Map<Key, Labels> KNOWN = new ConcurrentHashMap<>();

    static Labels of(Kind kind, Metric metric, Data data, List<Entry> attributes, List<Entry> identity) {
      Key key = new Key(kind, metric.name, metric.unit, data.temporality, data.monotonic, attributes, identity);
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
      quote(json, text);
      return json.toString();
    }

    /** `name{key=value,...}`, sorted by key; the name alone if there are no entries. */
    private static String series(Key key) {
      List<Entry> entries = new ArrayList<>(key.attributes);
      entries.addAll(key.identity);
      if (entries.isEmpty()) {
        return key.name;
      }
      // As UTF-8, as Python compares them; Java's own order is that of UTF-16.
      Comparator<String> order = Comparator.comparing(UTF8String::fromString);
      entries.sort(
          Comparator.comparing(Entry::key, order)
              .thenComparing(Entry::value, Comparator.nullsFirst(order)));
      return entries.stream()
          .map(entry -> entry.value == null ? entry.key : entry.key + "=" + entry.value)
          .collect(Collectors.joining(",", key.name + "{", "}"));
    }
  }

  private record Named(Kind kind, Labels labels, Point point) {}

  /** One field of all events as JSON. */
  private static final class Column {

    private final String name;
    private final StringBuilder cells;
    private boolean isEmpty = true;

    Column(String name, int bytes) {
      this.name = name;
      this.cells = new StringBuilder(bytes);
    }

    /** Where the next cell's JSON belongs. */
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
  }

  /**
   * The events of a resource as JSON, in columns; one in which all cells are null is left out.
   *
   * <p>They stand in the order of their series: collectors change theirs from scrape to scrape.
   */
  private static final class Rendering {

    private static final List<String> LABELS =
        List.of("series", "name", "unit", "type", "temporality", "monotonic", "attributes");
    private static final int BYTES = 32; // of a cell, about

    private final Column times, values, histograms;
    private final List<Column> labels;
    private boolean isSound = true;
    private long first = Long.MAX_VALUE;
    private long last = Long.MIN_VALUE;

    Rendering(List<Named> events) {
      int bytes = BYTES * events.size();
      times = new Column("time_unix_nano", bytes);
      values = new Column("value", bytes);
      histograms = new Column("histogram", bytes);
      labels = LABELS.stream().map(name -> new Column(name, bytes)).toList();
      events.sort(Comparator.comparing(event -> event.labels.series)); // as Python sorts
      events.forEach(this::add);
    }

    String text() {
      return Stream.concat(Stream.of(times, values, histograms), labels.stream())
          .filter(column -> !column.isEmpty)
          .map(column -> "\"" + column.name + "\":[" + column.cells + "]")
          .collect(Collectors.joining(",", "{", "}"));
    }

    /** The least time, if each event has one, and a finite value; else null. */
    Long first() {
      return isSound ? first : null;
    }

    Long last() {
      return isSound ? last : null;
    }

    private void add(Named event) {
      Kind kind = event.kind;
      Point point = event.point;
      addTime(point.time.integer());
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
      if (time == null || time <= 0) {
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

    /** Of a histogram's or summary's observations; 0 if there were none. */
    private static Double mean(Long count, Double total) {
      if (count != null && count == 0) {
        return 0.0;
      }
      return count == null || total == null ? null : (Double) (total / count);
    }
  }

  /** The field `histogram` of an event. What isn't known is absent. */
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
      quote(json.append(gap), name);
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

    /** A list converted, or null: a histogram has all its buckets or none. */
    private static <T> List<T> every(List<Scalar> values, Function<Scalar, T> convert) {
      if (values == null) {
        return null;
      }
      List<T> found = new ArrayList<>();
      for (Scalar value : values) {
        T converted = convert.apply(value);
        if (converted == null && value.token != null) {
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
     * Bucket i of `positive` is (base^(offset+i), base^(offset+i+1)], base = 2^(2^-scale) (OTLP); `negative` mirrors it;
     * the zero bucket takes all between the two.
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
