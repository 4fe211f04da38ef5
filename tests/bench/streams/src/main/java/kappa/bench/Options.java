package kappa.bench;

import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The arguments of a program: name=value. */
record Options(Map<String, String> values) {

  static Options of(String[] arguments) {
    return new Options(
        Stream.of(arguments)
            .map(argument -> argument.split("=", 2))
            .collect(Collectors.toMap(pair -> pair[0], pair -> pair[1])));
  }

  String text(String name) {
    String value = values.get(name);
    if (value == null) {
      throw new IllegalArgumentException(name + ": is missing; give " + name + "=VALUE");
    }
    return value;
  }

  int number(String name) {
    return Integer.parseInt(text(name));
  }
}
