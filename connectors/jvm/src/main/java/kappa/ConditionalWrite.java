package kappa;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Writes an object of S3 that must not be there yet (`If-None-Match`): of several writers at once, one succeeds. */
final class ConditionalWrite {

  private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";

  private ConditionalWrite() {}

  /** The stream of a new object, which is there once {@link #finish} has closed it; `abort` leaves nothing. */
  static FSDataOutputStream begin(FileSystem store, Path path) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = store.createFile(path);
    return builder.recursive().overwrite(false).must(ONLY_IF_ABSENT, true).build();
  }

  /** Closes the stream; throws FileAlreadyExistsException if another writer was first. */
  static void finish(FSDataOutputStream stream, FileSystem store, Path path) throws IOException {
    try {
      stream.close();
    } catch (IOException failure) {
      // The client has several names for it. It may also be our own, written by a request whose answer was lost.
      if (store.exists(path)) {
        throw (IOException) new FileAlreadyExistsException(path + " exists already").initCause(failure);
      }
      throw failure;
    }
  }
}
