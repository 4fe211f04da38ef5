package kappa;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, but that it sets permissions itself. Hadoop's starts a process, `chmod`, twice for each
 * file that it writes: four to eight times a micro-batch.
 */
public final class LocalFiles extends LocalFileSystem {

  public LocalFiles() {
    super(new Raw());
  }

  private static final class Raw extends RawLocalFileSystem {

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      if (permission.getStickyBit()) {
        super.setPermission(path, permission); // Java knows no sticky bit
        return;
      }
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    }
  }
}
