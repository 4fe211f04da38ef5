package kappa;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kappa.JsonReader.Scalar;
import kappa.JsonReader.ShapeException;
import kappa.JsonReader.UnusableException;
import kappa.MetricColumns.Entry;
import kappa.MetricColumns.Kind;
import kappa.MetricColumns.Labels;
import kappa.MetricColumns.Named;
import kappa.MetricColumns.Point;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Decodes single events in our own JSON: a record's bytes to one row. `lines_json.py` describes the format.
 *
 * <p>It is in the JVM since a record of one event costs more on its way to Python than to decode.
 */
public final class LinesJson implements UDF1<byte[], List<Row>> {

  private static final String METRIC = "metric";

  /**
   * The one row of a record. Its columns: batch, kind, machine, resource, json, first_unix_nano, last_unix_nano, error,
   * count, log, series_bytes, unit_bytes. The log is null, or has time_unix_nano, body, severity_text, attributes.
   */
  @Override
  public List<Row> call(byte[] value) throws IOException {
    String text = value == null ? "" : new String(value, StandardCharsets.UTF_8);
    try {
      return List.of(JsonReader.read(text, parser -> new Reader(parser).line(), "not_line").row());
    } catch (UnusableException unusable) {
      return List.of(RowFactory.create(null, METRIC, null, null, null, null, null, unusable.getMessage(), null, null, null, null));
    }
  }

  private static final class Line {
    Scalar time = Scalar.NONE, value = Scalar.NONE;
    String machine, name, unit, body, severity;
    Map<String, String> attributes = Map.of();

    Row row() {
      String kind = body == null ? METRIC : "log";
      String known = JsonReader.nonEmpty(machine);
      Map<String, String> resource = known == null ? Map.of() : Map.of("host.name", known);
      if (body == null && name == null) {
        return RowFactory.create(0, kind, known, resource, null, null, null, "no_events", null, null, null, null);
      }
      if (known == null) {
        return RowFactory.create(0, kind, null, resource, null, null, null, "no_machine", 1L, null, null, null);
      }
      if (body != null) {
        Row log = RowFactory.create(time.time(), body, severity, attributes);
        return RowFactory.create(0, kind, known, resource, null, null, null, null, null, log, null, null);
      }
      MetricColumns json = columns();
      return RowFactory.create(
          0,
          kind,
          known,
          resource,
          json.text(),
          json.first(),
          json.last(),
          null,
          null,
          null,
          json.seriesBytes(),
          json.unitBytes());
    }

    private MetricColumns columns() {
      List<Entry> entries = new ArrayList<>(attributes.size());
      attributes.forEach((key, text) -> entries.add(new Entry(key, text)));
      Point point = new Point();
      point.time = time;
      point.asDouble = value;
      Labels labels = Labels.of(new Labels.Key(Kind.GAUGE, name, unit, null, false, entries, List.of()));
      return new MetricColumns(Collections.singletonList(new Named(Kind.GAUGE, labels, point)));
    }
  }

  private static final class Reader extends JsonReader {

    Reader(JsonParser in) {
      super(in);
    }

    Line line() throws IOException {
      if (in.currentToken() != JsonToken.START_OBJECT) {
        throw new ShapeException();
      }
      Line found = new Line();
      object(found, this::field);
      return found;
    }

    private void field(Line into, String field) throws IOException {
      switch (field) {
        case "time_unix_nano" -> into.time = nextScalar();
        case "machine" -> into.machine = nextText();
        case "name" -> into.name = nextText();
        case "value" -> into.value = nextScalar();
        case "unit" -> into.unit = nextText();
        case "body" -> into.body = nextText();
        case "severity_text" -> into.severity = nextText();
        case "attributes" -> into.attributes = texts();
        default -> skip();
      }
    }

    private Map<String, String> texts() throws IOException {
      Map<String, String> found = new LinkedHashMap<>();
      in.nextToken();
      object(found, (into, key) -> into.put(key, nextText()));
      return found;
    }
  }
}
