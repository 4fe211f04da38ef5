package kappa;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import kappa.MetricColumns.Entry;

/** Reads what OTLP's metrics and logs share as JSON: resources, attributes and their values. */
class OtlpReader extends JsonReader {

  private static final List<String> VALUES =
      List.of("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue");

  OtlpReader(JsonParser in) {
    super(in);
  }

  static final class Pair {
    String key, value;
    int rank;

    Entry entry(String nameless) {
      return new Entry(key == null ? nameless : key, value);
    }
  }

  private static final class Request<T> {
    List<T> resources;
  }

  private static final class Attributes {
    List<Entry> entries = List.of();
  }

  /** The resources of the request that begins at the parser's current token; it has them in the field `name`. */
  <T> List<T> request(String name, Supplier<T> make, Fields<T> fields) throws IOException {
    Request<T> found = new Request<>();
    object(
        found,
        (into, field) -> {
          if (field.equals(name)) {
            into.resources = in.nextToken() == JsonToken.VALUE_NULL ? null : objects(make, fields);
          } else {
            skip();
          }
        });
    if (found.resources == null) {
      throw new ShapeException();
    }
    return found.resources;
  }

  /** The attributes of the resource that is the next value. */
  List<Entry> resourceEntries() throws IOException {
    Attributes found = new Attributes();
    in.nextToken();
    object(
        found,
        (into, field) -> {
          if (field.equals("attributes")) {
            into.entries = entries();
          } else {
            skip();
          }
        });
    return found.entries;
  }

  /** OTLP's attributes as text, in their order. */
  List<Entry> entries() throws IOException {
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
      case "value" -> into.value = nextValue();
      default -> skip();
    }
  }

  /** The AnyValue that is the next value as text: a string as it is, arrays and key-value lists in their JSON. */
  String nextValue() throws IOException {
    Pair found = new Pair();
    found.rank = VALUES.size();
    in.nextToken();
    object(found, this::anyValue);
    return found.value;
  }

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
}
