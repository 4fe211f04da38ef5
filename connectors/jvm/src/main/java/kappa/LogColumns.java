package kappa;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
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

  private final int size, time, number, severity, body, template, series, type, attributes;
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
    template = fields.indexOf("template");
    series = fields.indexOf("series");
    type = fields.indexOf("type");
    attributes = fields.indexOf("attributes");
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
    for (int field = 0; field < size; field++) {
      if (!line.isNullAt(field) && !isOfLines(field)) {
        return false;
      }
    }
    return !line.isNullAt(time)
        && line.getLong(time) > 0
        && fits(line, severity, textBytes)
        && fits(line, body, bodyBytes)
        && (line.isNullAt(attributes) || fits(line.getMap(attributes)));
  }

  private boolean isOfLines(int field) {
    return field == time
        || field == number
        || field == severity
        || field == body
        || field == template // which is made anew, as the series
        || field == series
        || field == type
        || field == attributes;
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
    Column times = new Column("time_unix_nano");
    Column numbers = new Column("severity_number");
    Column severities = new Column("severity_text");
    Column bodies = new Column("body");
    Column templated = new Column("template");
    Column named = new Column("series");
    Column types = new Column("type");
    Column attributed = new Column("attributes");
    for (int at = 0; at < events.numElements(); at++) {
      InternalRow line = events.getStruct(at, size);
      times.next().append(line.getLong(time));
      numbers.add(line.isNullAt(number) ? null : line.getInt(number));
      severities.quote(textOf(line, severity));
      bodies.quote(textOf(line, body));
      String found = templates.of(line.isNullAt(body) ? UTF8String.EMPTY_UTF8 : line.getUTF8String(body));
      templated.quote(found);
      named.quote(found);
      types.quote(textOf(line, type));
      attributed.add(line.isNullAt(attributes) ? null : line.getMap(attributes));
    }
    StringBuilder all = new StringBuilder("{");
    for (Column column : List.of(times, numbers, severities, bodies, templated, named, types, attributed)) {
      column.appendTo(all);
    }
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

    /** Where the next value goes. */
    StringBuilder next() {
      hasValue = true;
      return cells.append(cells.isEmpty() ? "" : ",");
    }

    void add(Integer number) {
      if (number == null) {
        addNone();
      } else {
        next().append(number.intValue());
      }
    }

    void quote(String text) {
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
