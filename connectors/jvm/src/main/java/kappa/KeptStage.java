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

  private final transient Choice choice;

  /** What Spark makes a changed copy of a plan's node by. */
  public KeptStage(SparkPlan child, int id) {
    this(child, id, new Choice());
  }

  private KeptStage(SparkPlan child, int id, Choice choice) {
    super(child, id);
    this.choice = choice;
  }

  @Override
  public WholeStageCodegenExec withNewChildInternal(SparkPlan child) {
    return new KeptStage(child, codegenStageId(), choice);
  }

  @Override
  public RDD<InternalRow> doExecute() {
    List<RDD<InternalRow>> inputs = CollectionConverters.asJava(((CodegenSupport) child()).inputRDDs());
    if (inputs.size() != 1 || choice.isTooLarge(this)) {
      return super.doExecute();
    }
    return choice.shared.over(inputs.get(0));
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

  /** The code of a stage and of its copies, and whether the JVM would compile it: Spark then doesn't use it. */
  private static final class Choice {
    private Boolean isTooLarge;
    private KeptCode.Shared shared;

    synchronized boolean isTooLarge(KeptStage stage) {
      if (isTooLarge == null) {
        Tuple2<CodegenContext, CodeAndComment> generated = stage.doCodeGen();
        CodeAndComment text = generated._2();
        isTooLarge = CodeGenerator.compile(text)._2().maxMethodCodeSize() > stage.conf().hugeMethodLimit();
        Object[] references = CollectionConverters.asJava(generated._1().references()).toArray();
        var factory =
            new WholeStageCodegenEvaluatorFactory(
                stage.tryBroadcastCleanedSource(text), stage.longMetric("pipelineTime"), references);
        shared = new KeptCode.Shared(() -> new Code(factory));
      }
      return isTooLarge;
    }
  }

  private record Code(WholeStageCodegenEvaluatorFactory factory) implements KeptCode {

    @Override
    public Iterator<InternalRow> rows(int partition, Iterator<InternalRow> input) {
      return factory.createEvaluator().eval(partition, Option.apply(input).toList());
    }
  }
}
