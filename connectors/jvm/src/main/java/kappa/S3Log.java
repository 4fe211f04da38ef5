package kappa;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
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
    // In memory first: what fails on its way leaves nothing, and can be told from another's.
    ByteArrayOutputStream version = new ByteArrayOutputStream();
    while (lines.hasNext()) {
      version.write((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    put(path.getFileSystem(configuration), path, version.toByteArray());
  }

  private static void put(FileSystem store, Path path, byte[] version) throws IOException {
    try {
      FSDataOutputStream stream = ConditionalWrite.begin(store, path);
      try {
        stream.write(version);
      } catch (IOException failure) {
        stream.abort();
        throw failure;
      }
      ConditionalWrite.finish(stream, store, path);
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException exists) {
      if (!isOurs(store, path, version)) {
        throw new FileAlreadyExistsException(path.toString());
      }
    }
  }

  /**
   * Whether what is there is what was to be written: the client repeats a request whose answer was lost, and is then told
   * of its own. Delta would write the same rows again, as the next version. Each version names its transaction.
   */
  private static boolean isOurs(FileSystem store, Path path, byte[] version) throws IOException {
    try (FSDataInputStream stream = store.open(path)) {
      return Arrays.equals(stream.readAllBytes(), version);
    }
  }
}
