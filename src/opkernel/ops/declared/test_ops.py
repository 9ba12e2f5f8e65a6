"""Shapes of the ops that TensorFlow registers for its own tests: most say nothing of theirs.

Source: TensorFlow python/framework/test_ops.cc, cc/framework/cc_op_gen_test and others.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    InferenceContext,
    OpShapeInferenceFn,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)


def _requires_older_graph_version(c: InferenceContext) -> None:
    if c.graph_def_version != GRAPH_DEF_VERSION - 1:
        raise InvalidArgumentError("Wrong graph version for shape")
    scalar_shape(c)


def _kernel_label_required(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 1)
    c.set_output(0, c.scalar())


_SCALAR = "DevicePlacementOp GraphDefVersion IsTensorFloat32Enabled KernelLabel"
_UNKNOWN = """
    A Attr AttrBool AttrBoolList AttrDefault AttrEmptyListDefault AttrEnum AttrEnumList AttrFloat
    AttrListDefault AttrListMin AttrListTypeDefault AttrMin AttrPartialShape AttrPartialShapeList
    AttrShape AttrShapeList AttrTypeDefault B Binary ComplexStruct ConstructionFails CopyOp
    DefaultAttrs FiveFloatOutputs FloatInput FloatOutput FloatOutputStringOutput Foo1
    Foo2 Foo3 FuncAttr FuncListAttr GetDeadline InPolymorphicTwice Int64Output IntAttr IntInput
    IntInputFloatInput IntInputIntOutput IntOutput IntOutputFloatOutput ListInput ListOutput
    MixedStruct MlirPassthroughOp NInPolymorphicTwice NInTwice NInTwoTypeVariables NIntsIn NIntsOut
    NIntsOutDefault NPolymorphicIn NPolymorphicOut NPolymorphicOutDefault NPolymorphicRestrictIn
    NPolymorphicRestrictOut Namespace>TestStringOutput None Old OpWithDefaultAttr
    OpWithFutureDefaultAttr OutT OutTypeList OutTypeListRestrict Polymorphic PolymorphicDefaultOut
    PolymorphicOut RefIn RefInputFloatInput RefInputFloatInputIntOutput RefInputIntInput RefOut
    RefOutput RefOutputFloatOutput ReservedAttr ReservedInput
    Restrict Simple SimpleStruct SleepOp StringListAttr TestAttr TestStringOutput TwoFloatInputs
    TwoFloatInputsFloatOutput TwoFloatInputsIntOutput TwoFloatOutputs TwoIntInputs TwoIntOutputs
    TwoRefsIn TypeList TypeListRestrict TypeListTwice Unary
"""

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALAR.split(), scalar_shape),
    **dict.fromkeys(_UNKNOWN.split(), unknown_shape),
    "KernelLabelRequired": _kernel_label_required,
    "RequiresOlderGraphVersion": _requires_older_graph_version,
    "SleepIdentityOp": unchanged_shape,
}
