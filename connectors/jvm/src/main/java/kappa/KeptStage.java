package kappa;

import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenEvaluatorFactory;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** A stage of a plan that Spark compiles, with its code kept: Spark generates the text of it for each micro-batch. */
public final class KeptStage extends WholeStageCodegenExec {

  private final transient Generated generated;

  /** What Spark makes a changed copy of a plan's node by. */
  public KeptStage(SparkPlan child, int id) {
    super(child, id);
    generated = new Generated(this);
  }

  private KeptStage(SparkPlan child, int id, Generated generated) {
    super(child, id);
    this.generated = generated;
  }

  @Override
  public WholeStageCodegenExec withNewChildInternal(SparkPlan child) {
    return new KeptStage(child, codegenStageId(), generated);
  }

  @Override
  public RDD<InternalRow> doExecute() {
    List<RDD<InternalRow>> inputs = CollectionConverters.asJava(((CodegenSupport) child()).inputRDDs());
    return inputs.size() == 1 && generated.isUsed() ? generated.shared.over(inputs.get(0)) : super.doExecute();
  }

  // A plan in which a node is replaced by an equal one is left as it was.

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KeptStage;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other) && super.equals(other);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /** The code of a stage and of its copies; made of the first, which reads no micro-batch's rows. */
  private static final class Generated {
    private final KeptStage stage;
    private Boolean isUsed;
    private KeptCode.Shared shared;

    Generated(KeptStage stage) {
      this.stage = stage;
    }

    /** Whether Spark would use the code: it doesn't if Janino or the JVM can't compile it. */
    synchronized boolean isUsed() {
      if (isUsed == null) {
        Tuple2<CodegenContext, CodeAndComment> code = stage.doCodeGen();
        isUsed = isCompiled(code._2());
        Object[] references = CollectionConverters.asJava(code._1().references()).toArray();
        var factory =
            new WholeStageCodegenEvaluatorFactory(
                stage.tryBroadcastCleanedSource(code._2()), stage.longMetric("pipelineTime"), references);
        shared = new KeptCode.Shared(() -> new Code(factory));
      }
      return isUsed;
    }

    private boolean isCompiled(CodeAndComment text) {
      try {
        return CodeGenerator.compile(text)._2().maxMethodCodeSize() <= stage.conf().hugeMethodLimit();
      } catch (RuntimeException refused) {
        return false; // Spark's own node says so
      }
    }
  }

  private record Code(WholeStageCodegenEvaluatorFactory factory) implements KeptCode {

    @Override
    public Iterator<InternalRow> rows(int partition, Iterator<InternalRow> input) {
      return factory.createEvaluator().eval(partition, Option.apply(input).toList());
    }
  }
}
