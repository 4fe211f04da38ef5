package kappa;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * A projection of Spark's that isn't part of a compiled stage, as one with functions of lists, with its code kept:
 * Spark generates it for each task, which takes 0.1 s of CPU time for hundreds of expressions.
 */
public final class KeptProjection extends ProjectExec {

  private final transient KeptCode.Shared shared;

  /** What Spark makes a changed copy of a plan's node by. */
  public KeptProjection(Seq<NamedExpression> columns, SparkPlan child) {
    this(columns, child, new KeptCode.Shared(() -> new Code(columns, child)));
  }

  private KeptProjection(Seq<NamedExpression> columns, SparkPlan child, KeptCode.Shared shared) {
    super(columns, child);
    this.shared = shared;
  }

  @Override
  public ProjectExec withNewChildInternal(SparkPlan child) {
    return new KeptProjection(projectList(), child, shared);
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return shared.over(child().execute());
  }

  // A plan in which a node is replaced by an equal one is left as it was.

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KeptProjection;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other) && super.equals(other);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  private static final class Code implements KeptCode {
    private final Seq<Expression> columns;
    private final Seq<Attribute> input;
    private transient UnsafeProjection projection;

    @SuppressWarnings("unchecked") // a Seq isn't written to: one of named expressions is one of expressions
    Code(Seq<NamedExpression> columns, SparkPlan child) {
      this.columns = (Seq<Expression>) (Seq<?>) columns;
      this.input = child.output();
    }

    @Override
    public Iterator<InternalRow> rows(int partition, Iterator<InternalRow> rows) {
      if (projection == null) {
        projection = UnsafeProjection.create(columns, input);
      }
      projection.initialize(partition);
      return rows.map(projection::apply);
    }
  }
}
