"""Where TensorFlow leaves open what a call gives, and `docs/differences.md` says what is given here.

Each entry is argued: nothing else may differ.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tools.campaigns.ways import Outcome

from opkernel.errors import Code, OpError
from opkernel.libraries import library
from opkernel.ops.image.codecs.jpeg import without_garbage
from opkernel.proto import GraphDef, NodeDef, TensorProto
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

__all__ = ["as_integers", "flush_subnormals", "free_outputs", "is_free", "with_free_elements"]

_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_TINY = {_FLOAT: np.finfo(_FLOAT).tiny, _DOUBLE: np.finfo(_DOUBLE).tiny}
_WITH_SUBNORMALS: Mapping[int, np.dtype[Any]] = {
    DataType.DT_FLOAT: _FLOAT,
    DataType.DT_COMPLEX64: _FLOAT,
    DataType.DT_DOUBLE: _DOUBLE,
    DataType.DT_COMPLEX128: _DOUBLE,
}

_Given = list[Any]
"""The constants that a node is given, in order; None for what is no constant."""


def _in_inference(node: NodeDef, given: _Given) -> bool:
    trains = "is_training" not in node.attr or node.attr["is_training"].b
    return not trains or any(np.size(value) == 0 for value in given[:1])


def _stops_early(node: NodeDef, given: _Given) -> bool:
    return given[0] is not None and np.ndim(given[1]) > 0 and int(given[0]) < len(given[1])


def _always(node: NodeDef, given: _Given) -> bool:
    return True


def _is_singular(node: NodeDef, given: _Given) -> bool:
    matrix = given[0]
    is_square = matrix is not None and np.ndim(matrix) > 1 and matrix.shape[-1] == matrix.shape[-2]
    with np.errstate(all="ignore"):
        return is_square and not np.all(np.abs(np.linalg.det(matrix)) > 0)


def _has_no_factor(node: NodeDef, given: _Given) -> bool:
    try:
        return not np.all(np.isfinite(np.linalg.cholesky(given[0])))
    except (np.linalg.LinAlgError, TypeError):
        return True


def _has_nan_range(node: NodeDef, given: _Given) -> bool:
    return any(value is not None and np.any(np.isnan(value)) for value in given[2:])


def _has_one_record(node: NodeDef, given: _Given) -> bool:
    return np.ndim(given[0]) == 0


_FREE_OUTPUTS: Mapping[str, tuple[set[int], Callable[[NodeDef, _Given], bool]]] = {
    # Reserve spaces are for the gradient: nothing writes them in inference, nor for an empty batch.
    "FusedBatchNorm": ({3, 4}, _in_inference),
    "FusedBatchNormV2": ({3, 4}, _in_inference),
    "FusedBatchNormV3": ({3, 4, 5}, _in_inference),
    # The gates of steps beyond seq_len_max are not written.
    "BlockLSTM": ({0, 2, 3, 4, 5}, _stops_early),
    "BlockLSTMV2": ({0, 2, 3, 4, 5}, _stops_early),
    # Vectors have any sign or phase, and those of equal values any basis; unasked ones are not written.
    "Svd": ({1, 2}, _always),
    "Qr": ({0, 1}, _always),
    # A matrix without a factor gives NaN here; what TensorFlow gives is left from the attempt.
    "Cholesky": ({0}, _has_no_factor),
    # Of a range that is NaN, integers are made in the processor's way.
    "QuantizedBiasAdd": ({0, 1, 2}, _has_nan_range),
    # Eigenvalues have any order.
    "Eig": ({0, 1}, _always),
    # Nothing writes these.
    "FakeParam": ({0}, _always),
    "Empty": ({0}, _always),
    # A logarithm has many branches; TensorFlow's root of a singular matrix may be NaN where there is one.
    "MatrixLogarithm": ({0}, _always),
    "MatrixSquareRoot": ({0}, _is_singular),
    # Row splits of a single record are not written.
    "ParseSequenceExampleV2": (set(range(64)), _has_one_record),
    "SelfAdjointEigV2": ({1}, _always),
}


_BY_ORDER = {
    "NthElement",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3",
    "QuantizeAndDequantizeV4",
    "SegmentMax",
    "SegmentMin",
}
"""Where NaN goes, or whether it counts as least, depends on the order in which TensorFlow compares."""


def free_outputs(graph_def: GraphDef) -> set[int]:
    """The outputs of the last node that TensorFlow leaves unspecified."""
    node = graph_def.node[-1]
    if node.op in _BY_ORDER and any(_has_nan(value) for value in _given(graph_def)):
        return {0, 1}
    outputs, applies = _FREE_OUTPUTS.get(node.op, (set(), _always))
    return outputs if outputs and applies(node, _given(graph_def)) else set()


def _has_nan(value: Any) -> bool:
    return value is not None and value.dtype != object and bool((value != value).any())


def _given(graph_def: GraphDef) -> _Given:
    constants = {node.name: node for node in graph_def.node if node.op == "Const"}
    return [_value_of(constants.get(name)) for name in graph_def.node[-1].input]


def _value_of(constant: NodeDef | None) -> Any:
    try:
        return None if constant is None else tensor_from_proto(constant.attr["value"].tensor)
    except OpError:
        return None


def as_integers(value: Any) -> Any:
    """Quantised results as TensorFlow's Python gives them: as integers, not as records of them."""
    names = np.asarray(value).dtype.names
    return value if names is None else value[names[0]]


def is_free(ours: Outcome, theirs: Any, graph_def: GraphDef) -> bool:
    """Whether both outcomes are right, though they may differ."""
    if isinstance(theirs, tuple):
        code = None if ours.error is None else ours.error.code
        laxer = _LAXER if graph_def.node[-1].op == "ParseSingleSequenceExample" else []
        return any(text in theirs[1] and code == here for text, here in [*_REFUSALS, *laxer])
    op = graph_def.node[-1].op
    words = [*_OUTSIDE.get(op, ()), *_STRICTER.get(op, ()), _ENDS_EARLY]
    return ours.error is not None and any(text in ours.error.message for text in words)


_REFUSALS = [
    # There are kernels for XLA, which is not here: the placer refuses there, the lookup here.
    ("No OpKernel was registered to support", Code.NOT_FOUND),
    # No elements, but huge sizes: refused when NumPy fetches it, here when it is made.
    ("Could not allocate ndarray", Code.INVALID_ARGUMENT),
    # Variants can be fetched here.
    ("Tensorflow type 21 not convertible to numpy dtype", None),
    # What takes too much is allocated before the rest is checked.
    ("OOM when allocating tensor", Code.INVALID_ARGUMENT),
]
"""What TensorFlow's message says, and the status code here; None where it is taken."""

_LAXER = [("Could not parse example input", None), ("Data types don't match", None)]
"""The same for a parser that reads all of a message, where only what is asked for is read here."""

_SIZES_OF_CELLS = ["!= cell_size", "!= batch_size"]
_ENDS_EARLY = "the file ends before its pixels do"
"""Of a JPEG file: also where a damaged marker among the pixels says so."""
_PAST_ITS_MESSAGE = ["a field goes past its message", "a field has number 0"]
_STRICTER = {
    # A comma before a closing bracket.
    "DecodeJSONExample": ["Error while parsing JSON"],
    # TensorFlow skips an unknown field that goes past the end, with all that might follow, or has number 0.
    "ParseExample": _PAST_ITS_MESSAGE,
    "ParseExampleV2": _PAST_ITS_MESSAGE,
    "ParseSingleExample": _PAST_ITS_MESSAGE,
    # TensorFlow logs the fault, and goes on with what its memory happens to hold.
    "ImageProjectiveTransformV2": ["is not supported"],
    "ImageProjectiveTransformV3": ["is not supported"],
}
"""What is refused here, by op, where TensorFlow takes damaged text or bytes, or a name that it does not know."""

_OUTSIDE = {
    "EncodeProto": ["must be between 0 and"],
    "AvgPoolGrad": ["computation requested would use"],
    "BandedTriangularSolve": ["Input matrix is not invertible"],
    "RaggedCross": ["sparse indices must be"],
    "SparseBincount": ["must be non-negative", "must have the same size"],
    "RaggedTensorToVariantGradient": ["The gradient has shape"],
    "RaggedBincount": ["must have the same size"],
    "BlockLSTMGrad": [*_SIZES_OF_CELLS, "is not the shape of the state"],
    "BlockLSTMGradV2": [*_SIZES_OF_CELLS, "is not the shape of the state"],
    "LSTMBlockCell": _SIZES_OF_CELLS,
    "LSTMBlockCellGrad": [*_SIZES_OF_CELLS, "is not the shape of the state"],
    "CropAndResizeGradBoxes": ["Boxes are too large"],
}
"""What is refused here, by op, where TensorFlow reads or writes outside of an array, or could."""


def with_free_elements(mine: Any, wanted: Any, graph_def: GraphDef) -> Any:
    """A result, with TensorFlow's elements where any would be right."""
    op = graph_def.node[-1].op
    one, other = np.asarray(mine), np.asarray(wanted)
    if one.dtype != other.dtype or one.shape != other.shape:
        return mine
    if op.startswith("Decode") and one.ndim > 2:
        return _with_free_pixels(one, other, graph_def)
    if one.dtype.kind not in "fcV":
        return mine
    if op in _FREE_WHERE_NOT_FINITE or (op in _COMPLEX_QUOTIENTS and one.dtype.kind == "c"):
        return np.where(np.isfinite(one) & np.isfinite(other), one, other)
    return mine


def _with_free_pixels(mine: Any, wanted: Any, graph_def: GraphDef) -> Any:
    """Pixels at the left and right of a crop, those after a file's end, and of files for which simplejpeg has no decoder."""
    node, contents = graph_def.node[-1], _given(graph_def)[0]
    if contents is None or contents.size != 1 or not contents.item().startswith(b"\xff\xd8"):
        return mine
    free = np.zeros(mine.shape, np.bool_)
    if node.op == "DecodeAndCropJpeg" and node.attr["fancy_upscaling"].b:
        free[:, [0, -1]] = True
    may_be_cut = node.attr["try_recover_truncated"].b or 0 < node.attr["acceptable_fraction"].f < 1
    if may_be_cut or _is_sampled_unusually(contents.item()):
        free[:] = True
    return np.where(free, wanted, mine)


def _is_sampled_unusually(data: bytes) -> bool:
    try:
        library("simplejpeg", "JPEG").decode_jpeg_header(without_garbage(data))
    except ValueError as error:
        return "subsampling" in str(error)
    return False


_COMPLEX_QUOTIENTS = {"Div", "RealDiv", "SqrtGrad", "Reciprocal", "Inv", "Xdivy", "DivNoNan"}
"""Of 0 and infinities: NaN in Eigen's packets, infinities or 0 in the elements that fill none."""

_FREE_WHERE_NOT_FINITE = {
    # The products that TensorFlow forms with zeros of its padding make infinities NaN.
    "Conv3DBackpropInputV2",
    "Conv3DBackpropFilterV2",
    "ScaleAndTranslateGrad",
}


def flush_subnormals(graph_def: GraphDef) -> bool:
    """Make subnormal constants and attrs zeros; whether there were any.

    The threads of TensorFlow's kernels flush them, and ufuncs of NumPy do not.
    """
    before = graph_def.SerializeToString(deterministic=True)
    for node in graph_def.node:
        for value in node.attr.values():
            if value.HasField("f") and 0 < abs(value.f) < np.finfo(np.float32).tiny:
                value.f = 0.0
            if value.HasField("tensor"):
                _flush(value.tensor)
    return graph_def.SerializeToString(deterministic=True) != before


def _flush(tensor: TensorProto) -> None:
    """Make subnormal elements zeros, however they are encoded."""
    dtype = _WITH_SUBNORMALS.get(tensor.dtype)
    try:
        values = None if dtype is None else np.array(tensor_from_proto(tensor))
    except OpError:
        return
    if dtype is None or values is None:
        return
    parts = values.view(dtype)
    small = (parts != 0) & (np.abs(parts) < _TINY[dtype])
    if small.any():
        parts[small] = 0
        tensor.CopyFrom(tensor_to_proto(values))
