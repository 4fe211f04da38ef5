package kappa;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Writes an object of S3 that must not be there yet (`If-None-Match`): of several writers at once, one succeeds.
 *
 * <p>The client isn't to look before it writes whether there is an object or a folder of that name: it would be two
 * requests more, and the store itself refuses the former.
 */
final class ConditionalWrite {

  private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";
  private static final String WITHOUT_A_LOOK = "fs.s3a.create.performance";

  private ConditionalWrite() {}

  /** The stream of a new object, which is there once {@link #finish} has closed it; `abort` leaves nothing. */
  static FSDataOutputStream begin(FileSystem store, Path path) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = builder(store, path, false);
    builder.must(ONLY_IF_ABSENT, true);
    return builder.build();
  }

  /** The stream of an object that may be there: then it is replaced when the stream is closed. */
  static FSDataOutputStream replace(FileSystem store, Path path) throws IOException {
    return builder(store, path, true).build();
  }

  private static FSDataOutputStreamBuilder<?, ?> builder(FileSystem store, Path path, boolean overwrite) {
    FSDataOutputStreamBuilder<?, ?> builder = store.createFile(path);
    builder.recursive().overwrite(overwrite);
    builder.opt(WITHOUT_A_LOOK, true);
    return builder;
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
