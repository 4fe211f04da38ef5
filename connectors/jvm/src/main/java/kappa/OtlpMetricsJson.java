package kappa;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import kappa.JsonReader.Scalar;
import kappa.JsonReader.UnusableException;
import kappa.MetricColumns.Buckets;
import kappa.MetricColumns.Entry;
import kappa.MetricColumns.Kind;
import kappa.MetricColumns.Labels;
import kappa.MetricColumns.Named;
import kappa.MetricColumns.Point;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Decodes OTLP metrics in JSON: a record's bytes to one row for each resource. `otlp_metrics_json.py` describes the
 * mapping.
 *
 * <p>It is in the JVM since nearly all data points come in this format, and to take them to Python costs more than to
 * decode them.
 */
public final class OtlpMetricsJson implements UDF1<byte[], List<Row>> {

  /**
   * The rows of a record: batch, machine, resource, json, first_unix_nano, last_unix_nano, error, count, series_bytes,
   * unit_bytes.
   */
  @Override
  public List<Row> call(byte[] value) throws IOException {
    Row known = value == null ? null : ScrapeTemplates.row(value);
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
    List<Resource> resources = JsonReader.read(text, parser -> new Reader(parser).request(), "not_otlp");
    List<Row> rows = new ArrayList<>();
    for (Resource resource : resources) {
      rows.add(resource.row(rows.size()));
    }
    if (rows.size() == 1 && text.length() == value.length) { // each character is one byte: places are the same in both
      ScrapeTemplates.remember(value, rows.get(0), resources.get(0).places);
    }
    return rows.isEmpty() ? List.of(failed("no_events")) : rows;
  }

  private static Row failed(String error) {
    return RowFactory.create(null, null, null, null, null, null, error, null, null, null);
  }

  private static final class Resource {
    List<Entry> entries = List.of();
    List<Metric> metrics = List.of();
    List<ScrapeTemplates.Place> places = List.of(); // of the points in the row, in its order

    Row row(int number) {
      Map<String, String> attributes = MetricColumns.asMap(entries);
      Identity identity = Identity.of(attributes);
      String machine = identity == null ? null : identity.machine(attributes);
      int count = metrics.stream().mapToInt(Metric::size).sum();
      if (count == 0) {
        return RowFactory.create(number, machine, attributes, null, null, null, "no_events", null, null, null);
      }
      if (machine == null) {
        return RowFactory.create(number, null, attributes, null, null, null, "no_machine", (long) count, null, null);
      }
      List<Named> events = named(identity.entries(attributes, machine));
      MetricColumns json = new MetricColumns(events);
      places = events.stream().map(event -> place(event.point())).toList();
      return RowFactory.create(
          number,
          machine,
          attributes,
          json.text(),
          json.first(),
          json.last(),
          null,
          null,
          json.seriesBytes(),
          json.unitBytes());
    }

    private static ScrapeTemplates.Place place(Point point) {
      return new ScrapeTemplates.Place(point.start.at(), point.time.at(), point.number().at());
    }

    private List<Named> named(List<Entry> identity) {
      List<Named> found = new ArrayList<>();
      for (Metric metric : metrics) {
        for (Kind kind : Kind.values()) {
          Data data = metric.data[kind.ordinal()];
          if (data != null) {
            for (Point point : data.points) {
              found.add(new Named(kind, metric.labels(kind, data, point, identity), point));
            }
          }
        }
      }
      return found;
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

    Labels labels(Kind kind, Data of, Point point, List<Entry> identity) {
      return Labels.of(
          new Labels.Key(kind, name, unit, of.temporality, of.monotonic, point.attributes, identity));
    }
  }

  private static final class Data {
    List<Point> points = List.of();
    String temporality;
    boolean monotonic;
  }

  private static final class Reader extends OtlpReader {

    Reader(JsonParser in) {
      super(in);
    }

    List<Resource> request() throws IOException {
      return request("resourceMetrics", Resource::new, this::resource);
    }

    private void resource(Resource into, String field) throws IOException {
      switch (field) {
        case "resource" -> into.entries = resourceEntries();
        case "scopeMetrics" -> {
          in.nextToken();
          into.metrics =
              objects(Scope::new, this::scope).stream().flatMap(scope -> scope.metrics.stream()).toList();
        }
        default -> skip();
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

    /** Reads a field of a data point that summarizes many observations: a histogram or a summary. */
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

    private void quantile(Pair into, String field) throws IOException {
      switch (field) {
        case "quantile" -> into.key = nextText();
        case "value" -> into.value = nextText();
        default -> skip();
      }
    }
  }
}
