package kappa;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import kappa.JsonReader.Scalar;
import kappa.JsonReader.UnusableException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class JsonReaderTest {

  /** The texts of the fields of an object, in the order in which they stand. */
  private static List<String> texts(String json) throws IOException, UnusableException {
    return JsonReader.read(
        json,
        parser -> {
          JsonReader reader = new JsonReader(parser);
          List<String> found = new ArrayList<>();
          reader.object(found, (into, field) -> into.add(field + " " + reader.nextText()));
          return found;
        },
        "not_object");
  }

  private static String code(String json) {
    return assertThrows(UnusableException.class, () -> texts(json)).getMessage();
  }

  private static Scalar text(String text) {
    return new Scalar(text, JsonToken.VALUE_STRING, 0);
  }

  private static Scalar whole(String text) {
    return new Scalar(text, JsonToken.VALUE_NUMBER_INT, 0);
  }

  private static Scalar fraction(String text) {
    return new Scalar(text, JsonToken.VALUE_NUMBER_FLOAT, 0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "{", "{} {}", "{}]", "NaN", "{\"a\":01}", "{\"a\":1,}", "\uFEFF{}", "{'a':1}", "{\"a\":\"\n\"}"})
  void whatIsNoJson(String json) {
    assertEquals("not_json", code(json));
  }

  @ParameterizedTest
  @ValueSource(strings = {"[]", "1", "\"a\"", "[{\"a\":1}]"})
  void jsonOfAnotherShape(String json) {
    assertEquals("not_object", code(json));
  }

  @Test
  void jsonThatIsMalformedBehindAnotherShapeIsNoJson() {
    assertEquals("not_json", code("[1,"));
    assertEquals("not_json", code("[1] 2"));
  }

  @Test
  void deepNestingIsNoJsonAndNoStackOverflow() {
    assertEquals("not_json", code("{\"a\":" + "[".repeat(100_000)));
    assertEquals("not_json", code("{\"a\":".repeat(5_000) + "1" + "}".repeat(5_000)));
  }

  @Test
  void anyValueAsText() throws Exception {
    String json = "{\"s\":\"x\\u00e9\",\"n\":-0.0e1,\"t\":true,\"z\":null,\"l\":[1, {\"k\" : \"a\\\"b\"}],\"o\":{}}";
    assertEquals(List.of("s xé", "n -0.0e1", "t true", "z null", "l [1,{\"k\":\"a\\\"b\"}]", "o {}"), texts(json));
  }

  @Test
  void aFieldThatStandsTwiceIsReadTwice() throws Exception {
    assertEquals(List.of("a 1", "a 2"), texts("{\"a\":1,\"a\":2}"));
  }

  @Test
  void numbersAndTextsOfAnyLength() throws Exception {
    String digits = "9".repeat(100_000);
    assertEquals(List.of("n " + digits, "s " + digits), texts("{\"n\":" + digits + ",\"s\":\"" + digits + "\"}"));
  }

  @ParameterizedTest
  @CsvSource({"5, 5", "-5, -5", "' 5 ', 5", "9223372036854775807, 9223372036854775807", "9223372036854775808,", "1.0,", "1_0,", "x,", "'',"})
  void integersFromDigits(String digits, Long expected) {
    assertEquals(expected, text(digits).integer());
  }

  @Test
  void integersFromNumbers() {
    assertEquals(-7L, whole("-7").integer());
    assertNull(whole("9".repeat(400)).integer());
    assertNull(fraction("1.0").integer());
    assertNull(Scalar.NONE.integer());
  }

  @ParameterizedTest
  @CsvSource({"1795245484412222354, 1795245484412222354", "0,", "-1,", "later,"})
  void aTimeIsPositive(String digits, Long expected) {
    assertEquals(expected, text(digits).time());
  }

  @ParameterizedTest
  @CsvSource({
    "1.5, 1.5", "-0, -0.0", "1e999, Infinity", "NaN, NaN", "-nan, NaN", "inf, Infinity", "-Infinity, -Infinity",
    "' 2 ', 2.0", "1_0,", "1f,", "0x1p3,", "'',", "e,"
  })
  void doublesFromText(String digits, Double expected) {
    assertEquals(expected, text(digits).number());
  }

  @Test
  void doublesFromNumbers() {
    assertEquals(-0.0, whole("-0").number());
    assertEquals(Double.POSITIVE_INFINITY, whole("9".repeat(400)).number());
    assertEquals(5e-324, fraction("5e-324").number());
    assertNull(new Scalar(null, JsonToken.START_OBJECT, -1).number());
  }

  @Test
  void aNumberKeepsItsDigitsIfTheyAreBeyondDoubtFinite() {
    assertEquals("-0", whole("-0").plain());
    assertEquals("1.50", fraction("1.50").plain());
    assertEquals("9".repeat(300), whole("9".repeat(300)).plain());
    assertEquals("7", text("7").plain());
    for (Scalar other : List.of(fraction("1e5"), whole("9".repeat(301)), text("007"), text("1.5"), text("-"), text(""), Scalar.NONE)) {
      assertNull(other.plain(), String.valueOf(other));
    }
  }
}
