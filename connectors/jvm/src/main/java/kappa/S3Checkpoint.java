package kappa;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * A checkpoint in S3: an object is there whole, or not at all, and of two copies of a job that plan the same batch at
 * the same moment, one succeeds.
 *
 * <p>Spark's default writes another file and renames it, which in S3 is to copy it. Its manager for object stores looks
 * whether the object exists, then writes: both copies may find nothing.
 */
public final class S3Checkpoint extends FileSystemBasedCheckpointFileManager {

  private final FileSystem store;

  public S3Checkpoint(Path path, Configuration configuration) throws IOException {
    super(path, configuration);
    store = path.getFileSystem(configuration);
  }

  @Override
  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    try {
      FSDataOutputStream stream = overwrite ? ConditionalWrite.replace(store, path) : ConditionalWrite.begin(store, path);
      return new Written(stream, path, overwrite);
    } catch (IOException failure) {
      throw LocalCheckpoint.rethrown(failure);
    }
  }

  /** An object that exists once it is closed. */
  private final class Written extends CheckpointFileManager.CancellableFSDataOutputStream {

    private final FSDataOutputStream stream;
    private final Path path;
    private final boolean overwrite;
    private final AtomicBoolean isOver = new AtomicBoolean();

    Written(FSDataOutputStream stream, Path path, boolean overwrite) {
      super(stream);
      this.stream = stream;
      this.path = path;
      this.overwrite = overwrite;
    }

    @Override
    public void close() throws IOException {
      if (isOver.getAndSet(true)) {
        return;
      }
      if (overwrite) {
        stream.close();
      } else {
        ConditionalWrite.finish(stream, store, path);
      }
    }

    @Override
    public void cancel() {
      if (!isOver.getAndSet(true)) {
        stream.abort();
      }
    }
  }
}
