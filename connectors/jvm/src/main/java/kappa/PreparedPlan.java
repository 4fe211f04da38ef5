package kappa;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;

/**
 * The physical plan of a step over micro-batches: made once over no rows, then given the rows of one batch after the
 * other. `connectors/prepared.py` uses it.
 *
 * <p>Spark analyses, optimises and plans each batch anew, though nothing of it differs but the rows that it reads.
 */
public final class PreparedPlan {

  private final RDD<InternalRow> nothing;
  private final StructType taken, given;
  private final SparkPlan plan;

  /** The plan of `result`, which was made of `input`, which `withoutRows` gave. */
  public PreparedPlan(Dataset<?> input, Dataset<?> result) {
    nothing = rowsOf(input);
    taken = input.schema();
    given = result.schema();
    plan = result.queryExecution().executedPlan().transformUp(new Keeping());
  }

  /** A frame without rows and with the columns of `frame`, of which nothing else is kept. */
  public static Dataset<Row> withoutRows(Dataset<?> frame) {
    RDD<InternalRow> nothing =
        frame.sparkSession().sparkContext().emptyRDD(ClassTag$.MODULE$.apply(InternalRow.class));
    return frame.sparkSession().internalCreateDataFrame(nothing, frame.schema(), false);
  }

  /** The rows of a frame; of one that was made of rows, these, without planning or copying anything. */
  static RDD<InternalRow> rowsOf(Dataset<?> frame) {
    LogicalPlan plan = frame.queryExecution().logical();
    return plan instanceof LogicalRDD made ? made.rdd() : frame.queryExecution().toRdd();
  }

  /** Whether the plan is of a frame with just these columns. */
  public boolean fits(Dataset<?> frame) {
    return taken.equals(frame.schema());
  }

  /** What the step gives of the rows of `frame`. */
  public Dataset<Row> over(Dataset<?> frame) {
    RDD<InternalRow> rows = rowsOf(frame);
    SparkPlan bound = plan.transformUp(new Bound(rows));
    return frame.sparkSession().internalCreateDataFrame(bound.execute(), given, false);
  }

  /** Keeps the code, too: of stages that are compiled and, where they aren't, of projections. */
  private static final class Keeping extends AbstractPartialFunction<SparkPlan, SparkPlan> {

    @Override
    public boolean isDefinedAt(SparkPlan node) {
      return node instanceof ProjectExec || node instanceof WholeStageCodegenExec;
    }

    @Override
    @SuppressWarnings("unchecked") // of a partial function from plans to plans, B is a plan's type
    public <A extends SparkPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      SparkPlan plan = node;
      if (plan instanceof ProjectExec projection) {
        return (B) new KeptProjection(projection.projectList(), projection.child());
      }
      return plan instanceof WholeStageCodegenExec stage
          ? (B) new KeptStage(stage.child(), stage.codegenStageId())
          : otherwise.apply(node);
    }
  }

  /** Puts a batch's rows in the place of none. */
  private final class Bound extends AbstractPartialFunction<SparkPlan, SparkPlan> {
    private final RDD<InternalRow> rows;

    Bound(RDD<InternalRow> rows) {
      this.rows = rows;
    }

    @Override
    public boolean isDefinedAt(SparkPlan node) {
      return node instanceof RDDScanExec scan && scan.rdd() == nothing;
    }

    @Override
    public <A extends SparkPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      return isDefinedAt(node) ? bound((RDDScanExec) (SparkPlan) node) : otherwise.apply(node);
    }

    @SuppressWarnings("unchecked") // of a partial function from plans to plans, B is a plan's type
    private <B> B bound(RDDScanExec scan) {
      return (B)
          scan.copy(
              scan.output(), rows, scan.name(), scan.outputPartitioning(), scan.outputOrdering(), scan.stream());
    }
  }
}
