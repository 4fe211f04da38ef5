package kappa;

import com.fasterxml.jackson.core.JsonParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import kappa.JsonReader.Scalar;
import kappa.JsonReader.UnusableException;
import kappa.MetricColumns.Entry;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Decodes OTLP logs in JSON: a record's bytes to one row for each resource. `otlp_logs_json.py` describes the mapping.
 */
public final class OtlpLogsJson implements UDF1<byte[], List<Row>> {

  // As `connectors/decoders/columns.py` has them.
  private static final Map<String, Integer> SEVERITIES =
      Map.ofEntries(
          Map.entry("EMERG", 21),
          Map.entry("EMERGENCY", 21),
          Map.entry("FATAL", 21),
          Map.entry("ALERT", 19),
          Map.entry("CRIT", 18),
          Map.entry("CRITICAL", 18),
          Map.entry("PANIC", 21),
          Map.entry("ERR", 17),
          Map.entry("ERROR", 17),
          Map.entry("WARNING", 13),
          Map.entry("WARN", 13),
          Map.entry("NOTICE", 10),
          Map.entry("INFO", 9),
          Map.entry("INFORMATIONAL", 9),
          Map.entry("DEBUG", 5),
          Map.entry("TRACE", 1));

  // The fields of an event, as `infra/contract/schemas.py` has them.
  private static final List<String> EVENT =
      List.of(
          "time_unix_nano",
          "value",
          "histogram",
          "severity_number",
          "severity_text",
          "body",
          "template",
          "series",
          "name",
          "unit",
          "type",
          "temporality",
          "monotonic",
          "attributes");

  /** The rows of a record: batch, machine, resource, events, error, count. */
  @Override
  public List<Row> call(byte[] value) throws IOException {
    try {
      return rows(value == null ? new byte[0] : value);
    } catch (UnusableException unusable) {
      return List.of(failed(unusable.getMessage()));
    }
  }

  private static List<Row> rows(byte[] value) throws IOException, UnusableException {
    String text = new String(value, StandardCharsets.UTF_8);
    List<Row> rows = new ArrayList<>();
    for (Resource resource : JsonReader.read(text, parser -> new Reader(parser).request(), "not_otlp")) {
      rows.add(resource.row(rows.size()));
    }
    return rows.isEmpty() ? List.of(failed("no_events")) : rows;
  }

  private static Row failed(String error) {
    return RowFactory.create(null, null, null, null, error, null);
  }

  private static final class Resource {
    List<Entry> entries = List.of();
    List<Line> lines = List.of();

    Row row(int number) {
      Map<String, String> attributes = MetricColumns.asMap(entries);
      Identity identity = Identity.of(attributes);
      String machine = identity == null ? null : identity.machine(attributes);
      if (lines.isEmpty()) {
        return RowFactory.create(number, machine, attributes, null, "no_events", null);
      }
      if (machine == null) {
        return RowFactory.create(number, null, attributes, null, "no_machine", (long) lines.size());
      }
      return RowFactory.create(number, machine, attributes, lines.stream().map(Line::row).toList(), null, null);
    }
  }

  private static final class Scope {
    List<Line> lines = List.of();
  }

  private static final class Line {
    Scalar time = Scalar.NONE;
    Scalar observed = Scalar.NONE;
    Scalar number = Scalar.NONE;
    String severity, body;
    List<Entry> attributes = List.of();

    Row row() {
      Long known = time.time();
      Object[] event = new Object[EVENT.size()];
      event[EVENT.indexOf("time_unix_nano")] = known == null ? observed.time() : known;
      event[EVENT.indexOf("severity_number")] = severityNumber();
      event[EVENT.indexOf("severity_text")] = JsonReader.nonEmpty(severity);
      event[EVENT.indexOf("body")] = body;
      event[EVENT.indexOf("type")] = "log";
      event[EVENT.indexOf("attributes")] = MetricColumns.asMap(attributes);
      return RowFactory.create(event);
    }

    private Integer severityNumber() {
      Long given = number.integer();
      if (given != null && given > 0 && given <= Integer.MAX_VALUE) {
        return given.intValue();
      }
      return severity == null ? null : SEVERITIES.get(severity.toUpperCase(Locale.ROOT));
    }
  }

  private static final class Reader extends OtlpReader {

    Reader(JsonParser in) {
      super(in);
    }

    List<Resource> request() throws IOException {
      return request("resourceLogs", Resource::new, this::resource);
    }

    private void resource(Resource into, String field) throws IOException {
      switch (field) {
        case "resource" -> into.entries = resourceEntries();
        case "scopeLogs" -> {
          in.nextToken();
          into.lines = objects(Scope::new, this::scope).stream().flatMap(scope -> scope.lines.stream()).toList();
        }
        default -> skip();
      }
    }

    private void scope(Scope into, String field) throws IOException {
      if (field.equals("logRecords")) {
        in.nextToken();
        into.lines = objects(Line::new, this::line);
      } else {
        skip();
      }
    }

    private void line(Line into, String field) throws IOException {
      switch (field) {
        case "timeUnixNano" -> into.time = nextScalar();
        case "observedTimeUnixNano" -> into.observed = nextScalar();
        case "severityNumber" -> into.number = nextScalar();
        case "severityText" -> into.severity = nextText();
        case "body" -> into.body = nextValue();
        case "attributes" -> into.attributes = entries();
        default -> skip();
      }
    }
  }
}
