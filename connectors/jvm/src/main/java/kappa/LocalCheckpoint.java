package kappa;

import java.io.File;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * A checkpoint on a local disk: of two copies of a job that plan the same batch at the same moment, one succeeds.
 *
 * <p>Spark looks whether the file exists, then renames: both may find nothing, and the second takes the first one's
 * place. A hard link is made once.
 */
public final class LocalCheckpoint extends FileSystemBasedCheckpointFileManager {

  public LocalCheckpoint(Path path, Configuration configuration) {
    super(path, configuration);
  }

  @Override
  public void renameTempFile(Path from, Path to, boolean overwrite) {
    try {
      if (overwrite || !link(file(from), file(to))) {
        super.renameTempFile(from, to, overwrite);
      }
    } catch (FileAlreadyExistsException exists) {
      throw rethrown(new org.apache.hadoop.fs.FileAlreadyExistsException(to + " exists already"));
    } catch (IOException failure) {
      throw rethrown(failure);
    }
  }

  /** Whether `from` was moved to `to`; false where the disk knows no hard links. */
  private static boolean link(File from, File to) throws IOException {
    try {
      Files.createLink(to.toPath(), from.toPath());
    } catch (FileAlreadyExistsException exists) {
      Files.delete(from.toPath());
      Files.deleteIfExists(checksum(from).toPath());
      throw exists;
    } catch (IOException | UnsupportedOperationException unknown) {
      return false;
    }
    File checksum = checksum(from);
    if (checksum.exists()) {
      Files.move(checksum.toPath(), checksum(to).toPath(), StandardCopyOption.REPLACE_EXISTING);
    }
    Files.delete(from.toPath());
    return true;
  }

  private static File file(Path path) {
    return new File(path.toUri().getPath());
  }

  /** Hadoop's checksums of a file, beside it. */
  private static File checksum(File file) {
    return new File(file.getParentFile(), "." + file.getName() + ".crc");
  }

  /** Scala declares no exceptions, and expects these as they are. */
  @SuppressWarnings("unchecked")
  static <T extends Throwable> RuntimeException rethrown(Throwable failure) throws T {
    throw (T) failure;
  }
}
