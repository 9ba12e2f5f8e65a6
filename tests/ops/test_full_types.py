import pytest

from opkernel.opdef import (
    InferenceContext,
    NodeDefBuilder,
    ShapeAndType,
    fake_input,
    full_type,
    global_op_registry,
    run_shape_fn,
)
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.loader import all_op_names
from opkernel.proto import FullTypeDef
from opkernel.types import DataType

# The ops of which TensorFlow 2.21 logs that they have such a function.
WITH_FORWARD_FN = {
    "AutoShardDataset",
    "BatchDatasetV2",
    "DatasetFromGraph",
    "DatasetToGraphV2",
    "Enter",
    "Exit",
    "Identity",
    "IteratorGetNextAsOptional",
    "Merge",
    "MultiDeviceIteratorFromStringHandle",
    "MultiDeviceIteratorToStringHandle",
    "NextIteration",
    "RebatchDataset",
    "RebatchDatasetV2",
    "Switch",
    "TensorListFromTensor",
    "TensorListSetItem",
    "TensorSliceDataset",
}


@pytest.fixture(scope="module")
def registrations():
    return {name: global_op_registry().look_up(name) for name in all_op_names()}


def test_the_ops_with_type_inference_functions(registrations):
    forward = {name for name, data in registrations.items() if data.forward_type_fn is not None}
    reverse = {
        name: data.reverse_type_input
        for name, data in registrations.items()
        if data.reverse_type_fn is not None
    }
    assert forward == WITH_FORWARD_FN
    assert reverse == {"MakeIterator": 1}


def test_declared_types_are_of_known_kinds(registrations):
    declared = [
        output.experimental_full_type.type_id
        for data in registrations.values()
        for output in data.op_def.output_arg
        if output.HasField("experimental_full_type")
    ]
    assert len(declared) == 150
    assert set(declared) == {
        FullTypeId.TFT_ARRAY,
        FullTypeId.TFT_DATASET,
        FullTypeId.TFT_MUTEX_LOCK,
        FullTypeId.TFT_OPTIONAL,
        FullTypeId.TFT_RAGGED,
        FullTypeId.TFT_SHAPE_TENSOR,
    }


def held_types(op, dtypes, **attrs):
    """The full types of what the first output holds, all input shapes unknown."""
    builder = NodeDefBuilder("n", op)
    for name, value in attrs.items():
        builder.attr(name, value)
    registration = global_op_registry().look_up(op)
    for arg in registration.op_def.input_arg:
        builder.input(fake_input(dtypes) if arg.type_list_attr else fake_input())
    node = builder.finalize()
    count = sum(not name.startswith("^") for name in node.input)
    context = InferenceContext(registration.op_def, node, [None] * count)
    run_shape_fn(registration, context)
    held = context.output_handle_shapes_and_types(0) or []
    return [
        None if one.full_type is None else full_type.full_type_string(one.full_type) for one in held
    ]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (DataType.DT_FLOAT, "TFT_ARRAY[TFT_TENSOR[TFT_FLOAT]]"),
        (DataType.DT_VARIANT, "TFT_ARRAY"),
        (DataType.DT_BFLOAT16, "TFT_ARRAY[TFT_TENSOR[TFT_UNSET]]"),
    ],
)
@pytest.mark.parametrize("op", ["EmptyTensorList", "TensorListReserve", "TensorListFromTensor"])
def test_lists_hold_their_full_type(op, dtype, expected):
    assert held_types(op, (), element_dtype=dtype, shape_type=DataType.DT_INT32) == [expected]


def test_optionals_hold_their_full_type_once_for_each_component():
    optional = "TFT_OPTIONAL[TFT_PRODUCT[TFT_TENSOR[TFT_FLOAT], TFT_TENSOR[TFT_LEGACY_VARIANT]]]"
    dtypes = [DataType.DT_FLOAT, DataType.DT_VARIANT]
    assert held_types("OptionalFromValue", dtypes) == [optional] * 2


def test_no_full_type_outlasts_the_stacking_of_lists():
    registration = global_op_registry().look_up("Pack")
    node = NodeDefBuilder("n", "Pack").input(fake_input(2, DataType.DT_VARIANT)).finalize()
    element = InferenceContext.make_shape([2])
    array = FullTypeId.TFT_ARRAY
    held = [ShapeAndType(element, DataType.DT_FLOAT, FullTypeDef(type_id=array))]
    context = InferenceContext(registration.op_def, node, [[], []], handle_shapes=[held, held])
    run_shape_fn(registration, context)
    assert context.output_handle_shapes_and_types(0) == [ShapeAndType(element, DataType.DT_FLOAT)]
