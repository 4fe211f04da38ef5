package kappa;

import java.io.Serializable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The template of a log line, by the regular expressions of `jobs/enrichment/templates.py`.
 *
 * <p>No token begins within a word, so none is searched for there: that is most of a line, and `regexp_replace` tries
 * the whole expression at each of its characters.
 */
public final class LogTemplate implements Serializable {

  private final Pattern tokens, lists;
  private final String mask;
  private final int bodyLength, templateLength;

  /**
   * @param tokens what is masked; it matches nowhere behind a letter, a digit or `_`
   * @param lists several masks that become one
   * @param bodyLength so many characters of a line count
   * @param templateLength so many characters of its template are kept
   */
  public LogTemplate(String tokens, String lists, String mask, int bodyLength, int templateLength) {
    this.tokens = Pattern.compile(tokens);
    this.lists = Pattern.compile(lists);
    this.mask = mask;
    this.bodyLength = bodyLength;
    this.templateLength = templateLength;
  }

  String of(UTF8String body) {
    String masked = masked(beginning(body, bodyLength).toString());
    return beginning(UTF8String.fromString(masked), templateLength).toString();
  }

  private String masked(String line) {
    Matcher token = tokens.matcher(line).useTransparentBounds(true).useAnchoringBounds(false);
    StringBuilder masked = new StringBuilder(line.length());
    int copied = 0;
    int at = 0;
    while (at <= line.length()) {
      if (isWithinWord(line, at) || !token.region(at, line.length()).lookingAt()) {
        at++;
        continue;
      }
      masked.append(line, copied, at).append(mask);
      copied = token.end();
      at = Math.max(copied, at + 1); // a token may be empty
    }
    masked.append(line, copied, line.length());
    return lists.matcher(masked).replaceAll(Matcher.quoteReplacement(mask));
  }

  private static boolean isWithinWord(String line, int at) {
    if (at == 0) {
      return false;
    }
    char before = line.charAt(at - 1);
    return before >= 'a' && before <= 'z'
        || before >= '0' && before <= '9'
        || before >= 'A' && before <= 'Z'
        || before == '_';
  }

  private static UTF8String beginning(UTF8String text, int characters) {
    return text.numBytes() <= characters ? text : text.substringSQL(1, characters);
  }
}
