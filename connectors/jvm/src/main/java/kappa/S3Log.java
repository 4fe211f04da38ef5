package kappa;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The log of a Delta table in S3 that several processes may write: the archive, its maintenance, a replay.
 *
 * <p>Delta's own knows only the writers of one process: another's version of the same number would take its place.
 */
public final class S3Log extends S3SingleDriverLogStore {

  public S3Log(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> lines, Boolean overwrite, Configuration configuration)
      throws IOException {
    if (overwrite) {
      super.write(path, lines, true, configuration);
      return;
    }
    FileSystem store = path.getFileSystem(configuration);
    try {
      FSDataOutputStream stream = ConditionalWrite.begin(store, path);
      try {
        while (lines.hasNext()) {
          stream.write((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
        }
      } catch (Throwable failure) {
        stream.abort();
        throw failure;
      }
      ConditionalWrite.finish(stream, store, path);
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException exists) {
      throw new FileAlreadyExistsException(path.toString());
    }
  }
}
