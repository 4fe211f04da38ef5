package kappa;

import java.io.ByteArrayOutputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import kappa.Scrape.Labels;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Coalesces, within a task, the rows that have the same `group` into one record: of log lines, or of data points, in
 * which each series' labels stand once. `jobs/enrichment/coalesce.py` says which rows have the same group.
 *
 * <p>It works on Spark's internal rows, since their conversion to Java's types and back costs more than the coalescing.
 */
public final class Coalescer implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {

  private static final int RECORD_BYTES = 1_000_000; // a record is at most so large, unless a single scrape is larger
  private static final int ADDED = 4; // columns
  private static final long HELD_BYTES = 32_000_000; // a task that holds more completes all its records

  private final int group, fields, json, offset, timestamp, delay;

  Coalescer(StructType schema) {
    group = schema.fieldIndex("group");
    fields = ((StructType) schema.apply(group).dataType()).size();
    json = schema.fieldIndex("json");
    offset = schema.fieldIndex("offset");
    timestamp = schema.fieldIndex("timestamp");
    delay = schema.fieldIndex("delay_ms");
  }

  /**
   * The rows of `frame`, with those of a group as one row; a row whose `group` is null stays as it is.
   *
   * <p>The one row is the group's first, with four more columns: `coalesced` is the `json` of all of them,
   * `last_offset`, `newest` and `longest_ms` are their greatest `offset`, `timestamp` and `delay_ms`. The four are null
   * for a row that stayed alone.
   */
  public static Dataset<Row> coalesced(Dataset<?> frame) {
    StructType schema = frame.schema();
    JavaRDD<InternalRow> rows =
        PreparedPlan.rowsOf(frame).toJavaRDD().mapPartitions(new Coalescer(schema), true);
    StructType wider =
        schema
            .add("coalesced", DataTypes.StringType)
            .add("last_offset", DataTypes.LongType)
            .add("newest", DataTypes.TimestampType)
            .add("longest_ms", DataTypes.LongType);
    return frame.sparkSession().internalCreateDataFrame(rows.rdd(), wider, false);
  }

  @Override
  public Iterator<InternalRow> call(Iterator<InternalRow> rows) {
    return new CoalescedRows(rows);
  }

  private final class CoalescedRows implements Iterator<InternalRow> {
    private final Iterator<InternalRow> rows;
    private final Map<UnsafeRow, Group> groups = new LinkedHashMap<>();
    private final Map<Labels, Labels> known = new HashMap<>();
    private final Queue<Group> complete = new ArrayDeque<>();
    private final JoinedRow joined = new JoinedRow();
    private final InternalRow alone = new GenericInternalRow(ADDED);
    private InternalRow next;
    private long held;

    CoalescedRows(Iterator<InternalRow> rows) {
      this.rows = rows;
    }

    @Override
    public boolean hasNext() {
      // A row that stays alone is returned before the next one is read, since Spark reuses its memory.
      while (next == null && complete.isEmpty() && rows.hasNext()) {
        next = take(rows.next());
      }
      if (next == null && complete.isEmpty()) {
        completeAll();
      }
      return next != null || !complete.isEmpty();
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      if (next == null) {
        Group group = complete.remove();
        return joined.apply(group.first, group.addedColumns());
      }
      InternalRow row = joined.apply(next, alone);
      next = null;
      return row;
    }

    /** Adds the row to its group and returns null, or returns the row if it stays alone. */
    private InternalRow take(InternalRow row) {
      if (row.isNullAt(group)) {
        return row;
      }
      Part part = part(row.getUTF8String(json).getBytes());
      if (part == null) {
        return row;
      }
      UnsafeRow key = (UnsafeRow) row.getStruct(group, fields);
      Group found = groups.get(key);
      if (found != null && found.content.bytesWith(part) > RECORD_BYTES) {
        complete.add(groups.remove(key));
        found = null;
      }
      if (found == null) {
        found = new Group(row.copy(), part instanceof Points ? new ManyPoints() : new ManyLines());
        groups.put(key.copy(), found);
        held += ((UnsafeRow) row).getSizeInBytes() + key.getSizeInBytes();
      }
      found.add(part, row.getLong(offset), row.getLong(timestamp), row.getLong(delay));
      held += part.bytes();
      if (held > HELD_BYTES) {
        completeAll();
      }
      return null;
    }

    /** What a row adds to its group; null if it can't be put together with others. */
    private Part part(byte[] text) {
      Scrape scrape = Scrape.of(text);
      if (scrape != null) {
        return new Points(scrape, interned(scrape.labels()));
      }
      LogLines lines = LogLines.of(text);
      return lines == null ? null : new Lines(lines);
    }

    private Labels interned(Labels seen) {
      Labels found = known.get(seen);
      if (found == null) {
        found = seen.copy();
        known.put(found, found);
        held += found.bytes();
      }
      return found;
    }

    private void completeAll() {
      complete.addAll(groups.values());
      groups.clear();
      known.clear();
      held = 0;
    }
  }

  /** The events of one row. Those of a group, whose rows have the same kind, are all points or all lines. */
  private sealed interface Part {
    int bytes();
  }

  private record Points(Scrape scrape, Labels labels) implements Part {
    @Override
    public int bytes() {
      return scrape.bytes();
    }
  }

  private record Lines(LogLines lines) implements Part {
    @Override
    public int bytes() {
      return lines.bytes();
    }
  }

  /** The rows that become one record. */
  private static final class Group {
    final InternalRow first;
    final Content content;
    private int rows;
    private long lastOffset, newest, longest;

    Group(InternalRow first, Content content) {
      this.first = first;
      this.content = content;
    }

    void add(Part part, long offset, long timestamp, long delay) {
      content.add(part);
      rows++;
      lastOffset = Math.max(lastOffset, offset);
      newest = Math.max(newest, timestamp);
      longest = Math.max(longest, delay);
    }

    /** The columns that `coalesced` adds. */
    InternalRow addedColumns() {
      if (rows == 1) {
        return new GenericInternalRow(ADDED);
      }
      return new GenericInternalRow(
          new Object[] {UTF8String.fromBytes(content.text()), lastOffset, newest, longest});
    }
  }

  private interface Content {
    int bytesWith(Part part);

    void add(Part part);

    byte[] text();
  }

  private static final class ManyLines implements Content {
    private final List<LogLines> records = new ArrayList<>();
    private int bytes;

    @Override
    public int bytesWith(Part part) {
      return bytes + part.bytes();
    }

    @Override
    public void add(Part part) {
      records.add(((Lines) part).lines);
      bytes = bytesWith(part);
    }

    @Override
    public byte[] text() {
      return LogLines.text(records);
    }
  }

  private static final class ManyPoints implements Content {
    private final ByteArrayOutputStream times = new ByteArrayOutputStream();
    private final ByteArrayOutputStream values = new ByteArrayOutputStream();
    private final List<Labels> labels = new ArrayList<>(); // one entry for each scrape
    private final Set<Labels> distinct = new LinkedHashSet<>();
    private int bytes;

    @Override
    public int bytesWith(Part part) {
      Labels its = ((Points) part).labels;
      return bytes + part.bytes() + (distinct.contains(its) ? 0 : its.bytes());
    }

    @Override
    public void add(Part part) {
      bytes = bytesWith(part);
      Points points = (Points) part;
      points.scrape.appendTo(times, values);
      labels.add(points.labels);
      distinct.add(points.labels);
    }

    @Override
    public byte[] text() {
      Table table = Table.of(distinct);
      int[] rows = labels.stream().flatMapToInt(one -> Arrays.stream(table.rows.get(one))).toArray();
      return Scrape.text(times, values, rows, table.text);
    }
  }

  /** The distinct labels of several scrapes as text, and for each scrape the rows in which its labels stand. */
  private record Table(byte[] text, Map<Labels, int[]> rows) {

    static Table of(Set<Labels> scrapes) {
      if (scrapes.size() == 1) {
        Labels only = scrapes.iterator().next();
        return new Table(only.text(), Map.of(only, IntStream.range(0, only.points()).toArray()));
      }
      // Sorted, so that a machine's records end in the same bytes as long as it has the same series.
      Map<String[], Integer> places = new TreeMap<>(Arrays::<String>compare);
      scrapes.forEach(one -> Arrays.stream(one.rows()).forEach(row -> places.put(row, null)));
      int next = 0;
      for (var place : places.entrySet()) {
        place.setValue(next++);
      }
      Map<Labels, int[]> rows = new HashMap<>();
      scrapes.forEach(one -> rows.put(one, Arrays.stream(one.rows()).mapToInt(places::get).toArray()));
      return new Table(Labels.text(places.keySet()), rows);
    }
  }
}
