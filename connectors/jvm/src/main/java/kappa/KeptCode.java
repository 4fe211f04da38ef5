package kappa;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * What a node of a plan does in a task, kept from one micro-batch to the next. Spark generates the code of a node
 * anew for each batch, or even for each task, and sends it along with each.
 *
 * <p>One object serves one task at a time: expressions have state, a parser for example.
 */
interface KeptCode extends Serializable {

  /** The rows that it makes of those of a partition. */
  Iterator<InternalRow> rows(int partition, Iterator<InternalRow> input);

  /** The code of a node and of its copies, of which each micro-batch has one. */
  final class Shared {
    private final Supplier<KeptCode> make;
    private KeptCode code; // what it refers to, a broadcast for example, lives as long
    private Broadcast<Copies> copies;

    Shared(Supplier<KeptCode> make) {
      this.make = make;
    }

    /** The rows of `input`, each partition's made by a copy of the code. */
    synchronized RDD<InternalRow> over(RDD<InternalRow> input) {
      if (copies == null) {
        code = make.get();
        copies = input.sparkContext().broadcast(new Copies(code), ClassTag$.MODULE$.apply(Copies.class));
      }
      return new Rows(input, copies);
    }
  }

  /** The copies that no task of this JVM uses at the moment. */
  final class Copies implements Serializable {
    private static final ClassTag<KeptCode> TAG = ClassTag$.MODULE$.apply(KeptCode.class);

    private final byte[] code;
    private transient volatile Queue<KeptCode> free;

    Copies(KeptCode code) {
      ByteBuffer written = serializer().serialize(code, TAG);
      this.code = new byte[written.remaining()];
      written.get(this.code);
    }

    KeptCode take() {
      KeptCode known = free().poll();
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      return known != null ? known : serializer().deserialize(ByteBuffer.wrap(code), loader, TAG);
    }

    void giveBack(KeptCode copy) {
      free().add(copy);
    }

    private Queue<KeptCode> free() {
      if (free == null) {
        synchronized (this) {
          free = free == null ? new ConcurrentLinkedQueue<>() : free;
        }
      }
      return free;
    }

    private static SerializerInstance serializer() {
      return SparkEnv.get().closureSerializer().newInstance();
    }
  }

  /** What the code makes of an RDD. */
  final class Rows extends RDD<InternalRow> {
    private static final ClassTag<InternalRow> TAG = ClassTag$.MODULE$.apply(InternalRow.class);

    private final Broadcast<Copies> copies;

    Rows(RDD<InternalRow> input, Broadcast<Copies> copies) {
      super(input, TAG);
      this.copies = copies;
    }

    @Override
    public Partition[] getPartitions() {
      return this.<InternalRow>firstParent(TAG).partitions();
    }

    @Override
    public Iterator<InternalRow> compute(Partition partition, TaskContext task) {
      Iterator<InternalRow> input = this.<InternalRow>firstParent(TAG).iterator(partition, task);
      return new Borrowed(copies.value(), task).rows(partition.index(), input);
    }
  }

  /** A copy while a task uses it; it is free for another one when this one has succeeded. */
  final class Borrowed implements TaskCompletionListener {
    // Buffers of a copy stay as large as its largest row made them: of a plan's dozens, each would hold some.
    private static final int KEPT_BYTES = 250_000;

    private final Copies copies;
    private final KeptCode copy;
    private int largest;

    Borrowed(Copies copies, TaskContext task) {
      this.copies = copies;
      this.copy = copies.take();
      task.addTaskCompletionListener(this); // before those of the copy: the last is called first
    }

    Iterator<InternalRow> rows(int partition, Iterator<InternalRow> input) {
      return measured(copy.rows(partition, measured(input)));
    }

    private Iterator<InternalRow> measured(Iterator<InternalRow> rows) {
      return rows.map(
          row -> {
            if (row instanceof UnsafeRow flat) {
              largest = Math.max(largest, flat.getSizeInBytes());
            }
            return row;
          });
    }

    @Override
    public void onTaskCompletion(TaskContext task) {
      if (!task.isFailed() && !task.isInterrupted() && largest <= KEPT_BYTES) {
        copies.giveBack(copy);
      }
    }
  }
}
