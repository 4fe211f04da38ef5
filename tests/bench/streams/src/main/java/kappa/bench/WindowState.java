package kappa.bench;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The statistics of a machine's series in one window, while it is open. */
final class WindowState {

  private record Series(String series, String name, String unit) {}

  private final Map<Series, Figures> figures = new LinkedHashMap<>();

  WindowState add(List<Point> points) {
    for (Point point : points) {
      Series series = new Series(point.series(), point.name(), point.unit());
      figures.computeIfAbsent(series, added -> new Figures()).add(point.value());
    }
    return this;
  }

  /** A table as columns: a list for each figure. */
  record Columns(
      List<String> series,
      List<String> name,
      List<String> unit,
      List<Long> count,
      List<Double> sum,
      List<Double> mean,
      List<Double> variance,
      List<Double> min,
      List<Double> max) {}

  Columns columns() {
    Columns found =
        new Columns(list(), list(), list(), list(), list(), list(), list(), list(), list());
    figures.forEach(
        (series, of) -> {
          found.series.add(series.series);
          found.name.add(series.name);
          found.unit.add(series.unit);
          found.count.add(of.count);
          found.sum.add(of.sum);
          found.mean.add(of.mean);
          found.variance.add(of.count > 1 ? of.squares / (of.count - 1) : 0.0);
          found.min.add(of.min);
          found.max.add(of.max);
        });
    return found;
  }

  private <T> List<T> list() {
    return new ArrayList<>(figures.size());
  }

  byte[] pack() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(128 * figures.size());
    DataOutputStream out = new DataOutputStream(bytes);
    try {
      for (Map.Entry<Series, Figures> one : figures.entrySet()) {
        Series series = one.getKey();
        out.writeUTF(series.series);
        out.writeUTF(series.name);
        out.writeBoolean(series.unit != null);
        if (series.unit != null) {
          out.writeUTF(series.unit);
        }
        one.getValue().pack(out);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return bytes.toByteArray();
  }

  static WindowState unpack(byte[] packed) {
    WindowState found = new WindowState();
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(packed));
    try {
      while (in.available() > 0) {
        Series series = new Series(in.readUTF(), in.readUTF(), in.readBoolean() ? in.readUTF() : null);
        found.figures.put(series, Figures.unpack(in));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found;
  }

  /** Of one series; mean and sum of squared deviations by Welford's method. */
  private static final class Figures {
    long count;
    double sum, mean, squares;
    double min = Double.POSITIVE_INFINITY, max = Double.NEGATIVE_INFINITY;

    void add(double value) {
      count++;
      sum += value;
      double deviation = value - mean;
      mean += deviation / count;
      squares += deviation * (value - mean);
      min = Math.min(min, value);
      max = Math.max(max, value);
    }

    void pack(DataOutputStream out) throws IOException {
      out.writeLong(count);
      for (double figure : new double[] {sum, mean, squares, min, max}) {
        out.writeDouble(figure);
      }
    }

    static Figures unpack(DataInputStream in) throws IOException {
      Figures found = new Figures();
      found.count = in.readLong();
      found.sum = in.readDouble();
      found.mean = in.readDouble();
      found.squares = in.readDouble();
      found.min = in.readDouble();
      found.max = in.readDouble();
      return found;
    }
  }
}
