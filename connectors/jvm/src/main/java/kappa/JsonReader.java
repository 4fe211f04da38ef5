package kappa;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Reads the JSON of the decoders in the JVM, token by token, with Jackson's streaming parser.
 *
 * <p>A field that is null counts as absent, an unknown field is skipped, and of a field that stands twice the last
 * counts.
 */
class JsonReader {

  private static final JsonFactory JSON =
      JsonFactory.builder()
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNumberLength(Integer.MAX_VALUE)
                  .maxStringLength(Integer.MAX_VALUE)
                  .maxNameLength(Integer.MAX_VALUE)
                  .build())
          .build();

  final JsonParser in;

  JsonReader(JsonParser in) {
    this.in = in;
  }

  /** Thrown for a record of which nothing can be used; its message is the code. */
  static final class UnusableException extends Exception {
    UnusableException(String code) {
      super(code, null, false, false);
    }
  }

  /** Thrown for JSON that has another shape than the format's. */
  static final class ShapeException extends IOException {}

  interface Format<T> {
    /** Reads the value that begins at the parser's current token. */
    T read(JsonParser in) throws IOException;
  }

  interface Fields<T> {
    /** Reads the value of a field, which is the parser's next token, or skips it. */
    void read(T into, String field) throws IOException;
  }

  /** Reads all of a text by `format`. If it is JSON of another shape, the exception's code is `other`. */
  static <T> T read(String text, Format<T> format, String other) throws IOException, UnusableException {
    try (JsonParser parser = JSON.createParser(text)) {
      if (parser.nextToken() == null) {
        throw new UnusableException("not_json");
      }
      T found = null;
      try {
        found = format.read(parser);
      } catch (ShapeException unknown) {
        while (!parser.getParsingContext().inRoot()) {
          parser.nextToken(); // it may not even be JSON
        }
      }
      if (parser.nextToken() != null) {
        throw new UnusableException("not_json");
      }
      if (found == null) {
        throw new UnusableException(other);
      }
      return found;
    } catch (JsonParseException | StreamConstraintsException malformed) {
      throw new UnusableException("not_json");
    }
  }

  /**
   * A JSON value that should be a number.
   *
   * @param text its text; null if it can't be a number
   * @param token its token; null if there is no value
   * @param at where it begins in the record; -1 if it can't be a number
   */
  record Scalar(String text, JsonToken token, int at) {

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

    /** Nanoseconds; null for 0, which means unknown, and for what isn't a positive 64-bit number. */
    Long time() {
      Long time = integer();
      return time == null || time <= 0 ? null : time;
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

    /** Its own text, if that is certainly the JSON of a finite number; else null. */
    String plain() {
      if (text == null || text.length() > ScrapeTemplates.LONGEST) {
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

  /** The objects of the list that begins at the current token; a null among them is an empty object. */
  <T> List<T> objects(Supplier<T> make, Fields<T> fields) throws IOException {
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

  /** Reads the object that begins at the current token; null is an empty object. */
  <T> void object(T into, Fields<T> fields) throws IOException {
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

  List<Scalar> scalars() throws IOException {
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

  Scalar nextScalar() throws IOException {
    in.nextToken();
    return scalar();
  }

  Scalar scalar() throws IOException {
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

  int at() {
    return (int) in.currentTokenLocation().getCharOffset();
  }

  boolean nextBoolean() throws IOException {
    return switch (in.nextToken()) {
      case VALUE_TRUE -> true;
      case VALUE_FALSE, VALUE_NULL -> false;
      default -> throw new ShapeException();
    };
  }

  /** A JSON value as text: a string as it is, anything else as its JSON; null for null. */
  String nextText() throws IOException {
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

  void structure(StringBuilder json) throws IOException {
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

  void skip() throws IOException {
    in.nextToken();
    in.skipChildren();
  }

  /** Null for an empty text, and for "-", syslog's way to write an absent field. */
  static String nonEmpty(String text) {
    return text == null || text.isEmpty() || text.equals("-") ? null : text;
  }

  static void quote(StringBuilder json, String text) {
    json.append('"');
    JsonStringEncoder.getInstance().quoteAsString(text, json);
    json.append('"');
  }
}
