"""Write op_calls.pb.xz: a graph of single op calls on constants, a few of each op of the catalogue.

pip install tensorflow-cpu==2.21.0
PYTHONPATH=src:. python tests/data/make_op_calls.py ../shared/vectors

Most are recorded calls that TensorFlow accepted, eagerly and in a graph: small ones with various
shapes. Calls on lists, optionals and functions are written out here.
"""

import functools
import json
import lzma
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.saved_model import nested_structure_coder
from tests.recorded_nodes import add_call, add_constant, arrays

from opkernel.opdef import infer_attr_from_python
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.proto import GraphDef, NodeDef
from opkernel.types import DataType

Calls = dict[str, list[tuple[Any, dict[str, Any]]]]

OUT = Path(__file__).parent / "op_calls.pb.xz"
CALLS_PER_OP = 4
MAX_BYTES = 2000  # of a recorded line
MAX_ELEMENTS = 200
SIDES = ("lhs", "rhs", "output")


def main() -> None:
    calls: Calls = defaultdict(list)
    empty: Calls = defaultdict(list)
    graph = GraphDef()
    for path in sorted(Path(sys.argv[1]).glob("*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            if not path.name.startswith(("advisories", "sequences")):
                for line in lines:
                    consider(calls, empty, line)
    calls |= {op: found for op, found in empty.items() if op not in calls}
    for op in sorted(calls):
        for number, (_, call) in enumerate(calls[op]):
            add_call(graph, f"recorded/{op}_{number}", call)
    add_fused_calls(graph)
    graph.MergeFromString(written_out().SerializeToString())
    OUT.write_bytes(lzma.compress(graph.SerializeToString(deterministic=True)))


def consider(calls: Calls, empty: Calls, line: str) -> None:
    """Keep a call if it is small and its op has few calls, or none with such shapes yet.

    Those with empty tensors are kept apart, for ops that have no others.
    """
    if len(line) > MAX_BYTES:
        return
    call = json.loads(line)
    if "outputs" not in call or call["op"] not in MODULE_OF_OP:
        return
    shapes = [tuple(array["shape"]) for array in arrays(call["inputs"])]
    sizes = [int(np.prod(shape)) for shape in shapes]
    if not all(size <= MAX_ELEMENTS for size in sizes):
        return
    kept = (calls if all(sizes) else empty)[call["op"]]
    is_new = len(kept) < CALLS_PER_OP and all(shapes != other for other, _ in kept)
    if is_new and fits_a_graph(call):
        kept.append((shapes, call))


def fits_a_graph(call: dict[str, Any]) -> bool:
    """Whether TensorFlow's shape function accepts the call; eager calls do without."""
    graph = GraphDef()
    add_call(graph, "call", call)
    graph_def = tf.compat.v1.GraphDef.FromString(graph.SerializeToString())
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(graph_def)
    except ValueError:
        return False
    return True


def add_fused_calls(graph: GraphDef) -> None:
    """Calls of ops that only TensorFlow's optimiser writes into graphs."""
    image, window = np.ones((1, 5, 5, 4), np.float32), np.ones((3, 3, 4, 2), np.float32)
    matrix, bias = np.ones((2, 4), np.float32), np.ones(4, np.float32)
    fused: dict[str, Any] = {"T": DataType.DT_FLOAT, "num_args": 1, "fused_ops": ["BiasAdd"]}
    strides = {"strides": [1, 2, 1, 1], "padding": "SAME", "TArgs": [DataType.DT_FLOAT]}
    windows = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    scales = [np.ones(4, np.float32)] * 4
    calls: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("_FusedMatMul", [matrix, matrix.T @ matrix, bias], fused),
        ("_FusedConv2D", [image, window, bias[:2]], fused | strides),
        ("_FusedDepthwiseConv2dNative", [image, window, np.ones(8, np.float32)], fused | windows),
        ("_FusedBatchNormEx", [image, *scales], {"T": DataType.DT_FLOAT, "U": DataType.DT_FLOAT}),
    ]
    for op, inputs, attrs in calls:
        node = NodeDef(name=f"fused/{op}", op=op)
        for number, value in enumerate(inputs):
            node.input.append(add_constant(graph, f"{node.name}/input_{number}", value))
        for key, value in attrs.items():
            node.attr[key].CopyFrom(infer_attr_from_python(value))
        graph.node.append(node)


def written_out() -> Any:
    """Calls that are not recorded: on tensor lists, on optionals, of functions, of printers."""
    tf.compat.v1.enable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        call_tensor_lists()
        call_optionals()
        call_functions()
        call_random_numbers()
        call_ragged_variants()
        call_uniform_quantized()
        call_summaries()
        call_maps_and_composites()
        call_debug_ops()
        raw = tf.raw_ops
        x = tf.constant([[1.0, 2.0, 3.0]])
        raw.Print(input=x, data=[x], message="")
        raw.PrintV2(input="", output_stream="stderr", end="")
        raw.DeepCopy(x=x)
        raw.ControlTrigger()
        raw.GuaranteeConst(input=x)
        raw.Timestamp()
        raw.DebugIdentity(input=x, tensor_name="x:0")
        raw.DebugIdentityV2(input=x)
        raw.DebugIdentityV3(input=x, tensor_name="x:0")
        raw.Empty(shape=[2, 3], dtype=tf.float32, init=True)
        raw.DeviceIndex(device_names=["GPU", "CPU"])
        raw.FakeParam(dtype=tf.float32, shape=[2, 3])
        for update in (raw.InplaceAdd, raw.InplaceSub, raw.InplaceUpdate):
            update(x=tf.transpose(x), i=[2, 0], v=[[4.0], [5.0]])
        raw.Const(value=tf.make_tensor_proto([[1, 2]]), dtype=tf.int32)
    return graph.as_graph_def()


def call_summaries() -> None:
    raw, image = tf.raw_ops, tf.constant([[[[0.5], [1.0]], [[2.0], [-1.0]]]])
    scalar = raw.ScalarSummary(tags=["a", "b"], values=[1.5, 2.0])
    raw.HistogramSummary(tag="h", values=[[1, 2, -3]])
    raw.ImageSummary(tag="i", tensor=image)
    raw.AudioSummaryV2(tag="a", tensor=[[0.5, -0.5]], sample_rate=8.0)
    tensor = raw.TensorSummary(tensor=image)
    raw.TensorSummaryV2(tag="t", tensor=["x"], serialized_summary_metadata="")
    raw.MergeSummary(inputs=[scalar, tensor])


def call_maps_and_composites() -> None:
    raw, key, value = tf.raw_ops, tf.constant(1), tf.constant([1.0, 2.0])
    entries = raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key=key, value=value)
    raw.TensorMapSize(input_handle=entries)
    raw.TensorMapHasKey(input_handle=entries, key=key)
    raw.TensorMapLookup(input_handle=entries, key=key, value_dtype=tf.float32)
    raw.TensorMapStackKeys(input_handle=entries, key_dtype=tf.int32)
    raw.TensorMapErase(input_handle=entries, key=key, value_dtype=tf.float32)
    spec = tf.RaggedTensorSpec([None, None], tf.float32)
    metadata = nested_structure_coder.encode_structure(spec).type_spec_value.SerializeToString()
    ragged = [value, tf.constant([0, 2], tf.int64)]
    composite = raw.CompositeTensorVariantFromComponents(components=ragged, metadata=metadata)
    raw.CompositeTensorVariantToComponents(
        encoded=composite, metadata=metadata, Tcomponents=[tf.float32, tf.int64]
    )


def call_debug_ops() -> None:
    raw, x = tf.raw_ops, tf.constant([[1.0, math.nan], [-2.0, math.inf]])
    raw.Copy(input=x)
    raw.CopyHost(input=x)
    raw.Fact()
    for mode in (2, 3, 4, 5, 8):
        raw.DebugNumericSummaryV2(input=x, tensor_debug_mode=mode)


def call_random_numbers() -> None:
    raw, shape = tf.raw_ops, tf.constant([2, 3], tf.int32)
    for name in ("RandomStandardNormal", "RandomUniform", "TruncatedNormal"):
        getattr(raw, name)(shape=shape, dtype=tf.float32, seed=1)
    raw.RandomUniformInt(shape=shape, minval=2, maxval=9)
    raw.RandomShuffle(value=[[1, 2], [3, 4], [5, 6]])
    raw.Multinomial(logits=[[0.5, 1.0], [2.0, 0.0]], num_samples=3)
    raw.RandomGamma(shape=shape, alpha=[0.5, 2.0])
    raw.RandomPoissonV2(shape=shape, rate=[0.5, 20.0])
    bounds = {"means": [0.0], "stdevs": [1.0], "minvals": [-1.0], "maxvals": [1.0]}
    raw.ParameterizedTruncatedNormal(shape=shape, **bounds)
    raw.NonDeterministicInts(shape=shape)
    raw.StatelessRandomGetAlg()
    for name in ("All", "LearnedUnigram", "LogUniform", "ThreadUnsafeUnigram", "Uniform"):
        more = {} if name == "All" else {"range_max": 9}
        getattr(raw, f"{name}CandidateSampler")(
            true_classes=tf.constant([[1, 2]], tf.int64),
            num_true=2,
            num_sampled=3,
            unique=True,
            **more,
        )
    boxes = [[[0.1, 0.1, 0.9, 0.9]]]
    raw.SampleDistortedBoundingBox(image_size=[20, 30, 3], bounding_boxes=boxes)
    raw.SampleDistortedBoundingBoxV2(
        image_size=[20, 30, 3], bounding_boxes=boxes, min_object_covered=0.1
    )


def call_ragged_variants() -> None:
    raw, splits = tf.raw_ops, tf.constant([0, 2, 3], tf.int64)
    rows = raw.RaggedTensorToVariant(
        rt_nested_splits=[splits], rt_dense_values=[1.0, 2.0, 3.0], batched_input=True
    )
    raw.RaggedTensorFromVariant(
        encoded_ragged=rows, input_ragged_rank=0, output_ragged_rank=1, Tvalues=tf.float32
    )
    raw.RaggedTensorToVariantGradient(
        encoded_ragged_grad=rows, row_splits=splits, dense_values_shape=[3], Tvalues=tf.float32
    )


def call_uniform_quantized() -> None:
    """Sums, products and convolutions of integers with scales."""
    raw = tf.raw_ops
    left, right = (
        tf.bitcast(tf.constant(x, tf.int8), tf.qint8)
        for x in ([[1, -2, 3]], [[4, 5], [6, 7], [8, 9]])
    )
    wide = tf.bitcast(tf.constant([[1, -2, 3], [40, 50, 60]]), tf.qint32)
    end = tf.bitcast(tf.constant(9), tf.qint32)
    by, by_column = ([0.5, 3], [[0.5, 0.25], [3, -4]])
    limits = {f"{side}_quantization_{end}_val": 100 for side in SIDES for end in ("min", "max")}
    limits |= {"output_quantization_min_val": -100}
    scaled = {f"{side}_scales": by[0] for side in SIDES} | {
        f"{side}_zero_points": by[1] for side in SIDES
    }
    channels = {"rhs_scales": by_column[0], "rhs_zero_points": by_column[1]}
    of_rhs = {name: value for name, value in limits.items() if name.startswith("rhs")}
    raw.UniformQuantizedAdd(lhs=wide, rhs=wide[:1], **scaled, **limits)
    raw.UniformQuantizedClipByValue(
        operand=wide,
        min=end,
        max=end,
        scales=by[0],
        zero_points=by[1],
        quantization_min_val=0,
        quantization_max_val=9,
    )
    raw.UniformQuantizedDot(
        lhs=left, rhs=right, Tout=tf.qint32, **scaled | channels, **limits, rhs_quantization_axis=1
    )
    raw.UniformQuantizedDotHybrid(
        lhs=[[1.0, -2.0, 0.5]],
        rhs=right,
        Tout=tf.float32,
        **channels,
        **of_rhs,
        rhs_quantization_axis=1,
    )
    filters = tf.reshape(right, [2, 1, 3])
    raw.UniformQuantizedConvolution(
        lhs=tf.reshape(left, [1, 1, 3]),
        rhs=filters,
        Tout=tf.qint32,
        padding="SAME",
        **scaled | channels,
        **limits,
        rhs_quantization_axis=0,
    )
    raw.UniformQuantizedConvolutionHybrid(
        lhs=[[[1.0, -2.0, 0.5, 4.0]]],
        rhs=filters,
        Tout=tf.float32,
        padding="VALID",
        **channels,
        **of_rhs,
        rhs_quantization_axis=0,
    )


def call_tensor_lists() -> None:
    raw, shape = tf.raw_ops, tf.constant([2], tf.int32)
    items = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    full = raw.TensorListFromTensor(tensor=items, element_shape=shape)
    empty = raw.EmptyTensorList(element_shape=shape, max_num_elements=9, element_dtype=tf.float32)
    one = raw.TensorListPushBack(input_handle=empty, tensor=items[0])
    raw.TensorListPopBack(input_handle=full, element_shape=shape, element_dtype=tf.float32)
    raw.TensorListLength(input_handle=full)
    raw.TensorListElementShape(input_handle=full, shape_type=tf.int32)
    raw.TensorListReserve(element_shape=shape, num_elements=3, element_dtype=tf.float32)
    raw.TensorListGetItem(input_handle=full, index=1, element_shape=shape, element_dtype=tf.float32)
    raw.TensorListSetItem(input_handle=full, index=1, item=items[0])
    raw.TensorListStack(input_handle=full, element_shape=shape, element_dtype=tf.float32)
    raw.TensorListGather(
        input_handle=full, indices=[2, 0], element_shape=shape, element_dtype=tf.float32
    )
    raw.TensorListScatter(tensor=items, indices=[2, 0, 1], element_shape=shape)
    raw.TensorListScatterV2(tensor=items, indices=[2, 0, 1], element_shape=shape, num_elements=4)
    raw.TensorListScatterIntoExistingList(input_handle=full, tensor=items, indices=[2, 0, 1])
    raw.TensorListResize(input_handle=full, size=5)
    raw.TensorListConcat(input_handle=full, element_dtype=tf.float32, element_shape=[2])
    raw.TensorListConcatV2(
        input_handle=full, element_shape=shape, leading_dims=[], element_dtype=tf.float32
    )
    raw.TensorListConcatLists(input_a=full, input_b=one, element_dtype=tf.float32)
    raw.TensorListSplit(tensor=items, element_shape=[-1, 2], lengths=[1, 2])
    batch = tf.stack([empty, one])
    raw.TensorListPushBackBatch(input_handles=batch, tensor=items[:2])


def call_optionals() -> None:
    raw, types, shapes = tf.raw_ops, [tf.int32, tf.float32], [[2], None]
    some = raw.OptionalFromValue(components=[tf.constant([1, 2]), tf.constant(3.0)])
    raw.OptionalNone()
    raw.OptionalHasValue(optional=some)
    raw.OptionalGetValue(optional=some, output_types=types, output_shapes=shapes)


def one_turn(function: Callable[[Any], Any], turn: Any, value: Any) -> tuple[Any, Any]:
    return turn + 1, function(value)


def call_functions() -> None:
    """Conditionals, a switch and a loop, with state in them and without, and calls."""
    x, number = tf.constant([[1.0, 2.0]]), tf.constant(2)

    @tf.function
    def double(value: Any) -> Any:
        return value + value

    def checked(value: Any) -> Any:
        tf.raw_ops.Assert(condition=True, data=[value])
        return value

    @tf.function
    def strict(value: Any) -> Any:
        return checked(value)

    double(x)
    strict(x)
    for branch in (tf.identity, checked):
        tf.cond(number > 1, functools.partial(branch, x), lambda: x + 1.0)
        tf.switch_case(number, [lambda: x, lambda: x + 1.0, functools.partial(branch, x)])
        tf.while_loop(lambda i, _: i < 3, functools.partial(one_turn, branch), [number, x])


if __name__ == "__main__":
    main()
