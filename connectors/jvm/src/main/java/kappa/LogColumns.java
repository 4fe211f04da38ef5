package kappa;

import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Log lines as JSON in columns, with their templates: what the expressions of `jobs/enrichment/transform.py` make of
 * lines that exceed no limit.
 */
public final class LogColumns implements Serializable {

  private static final StructType RENDERED =
      new StructType()
          .add("json", DataTypes.StringType)
          .add("first_unix_nano", DataTypes.LongType)
          .add("last_unix_nano", DataTypes.LongType);

  private final int size, time, number, severity, body, type, attributes;
  private final int[] others; // fields of data points
  private final LogTemplate templates;
  private final int mostAttributes, keyBytes, textBytes, bodyBytes;

  /**
   * @param fields the names of an event's fields, in their order
   * @param limits the numbers of EnrichmentSettings; one of characters is taken as of bytes, of which there are more
   */
  public LogColumns(List<String> fields, LogTemplate templates, Map<String, Integer> limits) {
    size = fields.size();
    time = fields.indexOf("time_unix_nano");
    number = fields.indexOf("severity_number");
    severity = fields.indexOf("severity_text");
    body = fields.indexOf("body");
    type = fields.indexOf("type");
    attributes = fields.indexOf("attributes");
    others = IntStream.range(0, size).filter(field -> !LogLines.NAMES.contains(fields.get(field))).toArray();
    this.templates = templates;
    mostAttributes = limits.get("attributes");
    keyBytes = limits.get("attribute_key_bytes");
    textBytes = limits.get("attribute_characters");
    bodyBytes = limits.get("body_characters");
  }

  /**
   * The rows of `frame`, which have the columns `kind` and `events`, with the column `lines`: of log lines that exceed
   * no limit and have a time each, their JSON, and the earliest and the latest time; null of all others.
   */
  public Dataset<Row> rendered(Dataset<Row> frame) {
    Expression events = ExpressionUtils.expression(frame.col("events"));
    Expression lines =
        new Invoke(
            new Literal(this, new ObjectType(LogColumns.class)),
            "render",
            RENDERED,
            Seq$.MODULE$.from(CollectionConverters.asScala(List.of(events))),
            Seq$.MODULE$.<AbstractDataType>empty(),
            true, // null of null
            true,
            true);
    return frame.withColumn("lines", functions.when(frame.col("kind").equalTo("log"), ExpressionUtils.column(lines)));
  }

  /** What the column `lines` has of one row's events. Spark's generated code calls it. */
  public InternalRow render(ArrayData events) {
    if (events.numElements() == 0) {
      return null;
    }
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (int at = 0; at < events.numElements(); at++) {
      if (events.isNullAt(at) || !isPlain(events.getStruct(at, size))) {
        return null;
      }
      long found = events.getStruct(at, size).getLong(time);
      first = Math.min(first, found);
      last = Math.max(last, found);
    }
    return new GenericInternalRow(new Object[] {UTF8String.fromString(text(events)), first, last});
  }

  private boolean isPlain(InternalRow line) {
    for (int field : others) {
      if (!line.isNullAt(field)) {
        return false;
      }
    }
    return !line.isNullAt(time)
        && line.getLong(time) > 0
        && fits(line, severity, textBytes)
        && fits(line, body, bodyBytes)
        && (line.isNullAt(attributes) || fits(line.getMap(attributes)));
  }

  private static boolean fits(InternalRow line, int field, int bytes) {
    return line.isNullAt(field) || line.getUTF8String(field).numBytes() <= bytes;
  }

  private boolean fits(MapData map) {
    if (map.numElements() > mostAttributes) {
      return false;
    }
    ArrayData keys = map.keyArray();
    ArrayData values = map.valueArray();
    for (int at = 0; at < map.numElements(); at++) {
      if (keys.getUTF8String(at).numBytes() > keyBytes
          || !values.isNullAt(at) && values.getUTF8String(at).numBytes() > textBytes) {
        return false;
      }
    }
    return true;
  }

  private String text(ArrayData events) {
    List<Column> columns = LogLines.NAMES.stream().map(Column::new).toList();
    for (int at = 0; at < events.numElements(); at++) {
      InternalRow line = events.getStruct(at, size);
      String template = templates.of(line.isNullAt(body) ? UTF8String.EMPTY_UTF8 : line.getUTF8String(body));
      Iterator<Column> next = columns.iterator(); // in the order of LogLines.NAMES
      next.next().add(line.getLong(time));
      next.next().add(line.isNullAt(number) ? null : (long) line.getInt(number));
      next.next().add(textOf(line, severity));
      next.next().add(textOf(line, body));
      next.next().add(template);
      next.next().add(template); // the series
      next.next().add(textOf(line, type));
      next.next().add(line.isNullAt(attributes) ? null : line.getMap(attributes));
    }
    StringBuilder all = new StringBuilder("{");
    columns.forEach(column -> column.appendTo(all));
    all.setLength(all.length() - 1); // the last comma
    return all.append('}').toString();
  }

  private static String textOf(InternalRow line, int field) {
    return line.isNullAt(field) ? null : line.getUTF8String(field).toString();
  }

  /** A list of JSON values under its name; it is left out if all of them are null. */
  private static final class Column {
    private final StringBuilder cells = new StringBuilder();
    private final String name;
    private boolean hasValue;

    Column(String name) {
      this.name = name;
    }

    void add(Long number) {
      if (number == null) {
        addNone();
      } else {
        next().append(number.longValue());
      }
    }

    void add(String text) {
      if (text == null) {
        addNone();
      } else {
        JsonReader.quote(next(), text);
      }
    }

    void add(MapData map) {
      if (map == null) {
        addNone();
        return;
      }
      StringBuilder json = next().append('{');
      for (int at = 0; at < map.numElements(); at++) {
        JsonReader.quote(json.append(at == 0 ? "" : ","), map.keyArray().getUTF8String(at).toString());
        json.append(':');
        if (map.valueArray().isNullAt(at)) {
          json.append("null");
        } else {
          JsonReader.quote(json, map.valueArray().getUTF8String(at).toString());
        }
      }
      json.append('}');
    }

    /** Where the next value goes. */
    private StringBuilder next() {
      hasValue = true;
      return cells.append(cells.isEmpty() ? "" : ",");
    }

    private void addNone() {
      cells.append(cells.isEmpty() ? "null" : ",null");
    }

    void appendTo(StringBuilder all) {
      if (hasValue) {
        all.append('"').append(name).append("\":[").append(cells).append("],");
      }
    }
  }
}
