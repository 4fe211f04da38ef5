package kappa;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.pattern.PatternCaptureGroupTokenFilter;
import org.elasticsearch.index.analysis.AbstractTokenFilterFactory;
import org.elasticsearch.index.analysis.AbstractTokenizerFactory;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/**
 * What the index `.security` asks of text analysis and the minimal server lacks: it comes with a module of the full one.
 *
 * <p>Without it users, roles and API keys can't be made by API.
 */
public final class SecurityAnalysis extends Plugin implements AnalysisPlugin {

  @Override
  public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
    AnalysisProvider<TokenFilterFactory> captures =
        (index, environment, name, settings) -> {
          List<String> patterns = settings.getAsList("patterns");
          Pattern[] compiled = patterns.stream().map(Pattern::compile).toArray(Pattern[]::new);
          boolean keeps = settings.getAsBoolean("preserve_original", true);
          return filter(name, tokens -> new PatternCaptureGroupTokenFilter(tokens, keeps, compiled));
        };
    return Map.of(
        "pattern_capture",
        AnalysisPlugin.requiresAnalysisSettings(captures),
        "unique",
        (index, environment, name, settings) -> filter(name, RemoveDuplicatesTokenFilter::new));
  }

  @Override
  public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
    return Map.of(
        "uax_url_email",
        (index, environment, name, settings) ->
            new AbstractTokenizerFactory(name) {
              @Override
              public Tokenizer create() {
                return new UAX29URLEmailTokenizer();
              }
            });
  }

  private static TokenFilterFactory filter(String name, Function<TokenStream, TokenStream> made) {
    return new AbstractTokenFilterFactory(name) {
      @Override
      public TokenStream create(TokenStream tokens) {
        return made.apply(tokens);
      }
    };
  }
}
