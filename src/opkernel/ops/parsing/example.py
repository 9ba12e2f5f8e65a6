"""Example messages as tensors: ParseExample, ParseExampleV2, ParseSingleExample; and from JSON: DecodeJSONExample.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/example_parsing_ops.cc.
"""

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from opkernel.device.made_bytes import check_bytes
from opkernel.device.string_tensors import map_strings
from opkernel.device.work_clock import check_seconds
from opkernel.errors import InvalidArgumentError
from opkernel.escaping import json_value
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op, unchanged_shape
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_most,
    require_scalar,
    require_vector,
)
from opkernel.ops.parsing.feature_tensors import (
    Features,
    check_dense_shapes,
    of_one,
    parse_example_shape,
    parse_example_v2_shape,
    parse_single_example_shape,
)
from opkernel.ops.parsing.features import BY_COLUMNS, Reading
from opkernel.ops.registration import register_kernel
from opkernel.proto import Example, Feature
from opkernel.types import DataType, PartialTensorShape, TensorShape
from opkernel.types.varints import varint

PARSE_EXAMPLE = register_op(
    "ParseExample(serialized: string, names: string, sparse_keys: Nsparse * string, "
    "dense_keys: Ndense * string, dense_defaults: Tdense) -> sparse_indices: Nsparse * int64, "
    "sparse_values: sparse_types, sparse_shapes: Nsparse * int64, dense_values: Tdense",
    attrs=[
        "Nsparse: int >= 0",
        "Ndense: int >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "Tdense: list({float, int64, string}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    shape_fn=parse_example_shape,
    doc="The features of serialized Example messages, as sparse and dense tensors.",
)

_OUTPUTS = (
    "sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
    "sparse_shapes: num_sparse * int64, dense_values: Tdense"
)

PARSE_EXAMPLE_V2 = register_op(
    "ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string, "
    f"ragged_keys: string, dense_defaults: Tdense) -> {_OUTPUTS}, "
    "ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types",
    attrs=[
        "Tdense: list({float, int64, string}) >= 0",
        "num_sparse: int >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "ragged_value_types: list({float, int64, string}) >= 0",
        "ragged_split_types: list({int32, int64}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    shape_fn=parse_example_v2_shape,
    doc="The features of serialized Example messages, as sparse, dense and ragged tensors.",
)

PARSE_SINGLE_EXAMPLE = register_op(
    f"ParseSingleExample(serialized: string, dense_defaults: Tdense) -> {_OUTPUTS}",
    attrs=[
        "num_sparse: int >= 0",
        "sparse_keys: list(string) >= 0",
        "dense_keys: list(string) >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "Tdense: list({float, int64, string}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    shape_fn=parse_single_example_shape,
    doc="The features of one serialized Example message.",
)


def _check_equal(what: str, count: int, other: str, length: int) -> None:
    require_equal(count, length, f"len({what}) != len({other}): {{}} vs. {{}}")


def _keys(tensors: Sequence[Any]) -> list[bytes]:
    for tensor in tensors:
        require(tensor.size == 1, "Expected one string for each key")
    return [tensor.item() for tensor in tensors]


def check_names(serialized: Any, names: Any) -> None:
    """There is a name for each example, or none at all."""
    if names.size and names.shape != serialized.shape:
        raise InvalidArgumentError(
            f"Expected len(names) == len(serialized), but got {TensorShape(names.shape)} and "
            f"{TensorShape(serialized.shape)}"
        )


def parse_example(
    reading: Reading,
    *,
    Nsparse: int,
    Ndense: int,
    sparse_types: list[DataType],
    Tdense: list[DataType],
    dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    check_dense_shapes(dense_shapes)
    _check_equal("sparse_keys", Nsparse, "sparse_types", len(sparse_types))
    _check_equal("dense_keys", Ndense, "dense_types", len(Tdense))
    _check_equal("dense_keys", Ndense, "dense_shapes", len(dense_shapes))
    features = Features("", sparse_types, Tdense, dense_shapes, reading=reading)

    def parse(
        serialized: Any, names: Any, sparse_keys: Any, dense_keys: Any, dense_defaults: Any
    ) -> Any:
        keys = _keys([*sparse_keys, *dense_keys])
        require_vector(serialized, "Expected serialized to be a vector, got shape: {}")
        check_names(serialized, names)
        return features.outputs(serialized.tolist(), keys, dense_defaults)[:4]

    return parse


def parse_example_v2(
    reading: Reading,
    *,
    Tdense: list[DataType],
    num_sparse: int,
    sparse_types: list[DataType],
    ragged_value_types: list[DataType],
    ragged_split_types: list[DataType],
    dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    check_dense_shapes(dense_shapes)
    _check_equal("sparse_keys", num_sparse, "sparse_types", len(sparse_types))
    _check_equal("dense_keys", len(Tdense), "dense_shapes", len(dense_shapes))
    ragged = len(ragged_value_types)
    _check_equal("ragged_keys", ragged, "ragged_split_types", len(ragged_split_types))
    kinds = sparse_types, Tdense, dense_shapes, ragged_value_types, ragged_split_types
    features = Features("", *kinds, reading)

    def parse(
        serialized: Any, names: Any, sparse: Any, dense: Any, ragged: Any, dense_defaults: Any
    ) -> Any:
        keys = features.keys(sparse, dense, ragged, expected="{}_keys to be a vector")
        require_rank_at_most(
            serialized, 1, "Expected serialized to be a scalar or vector, got shape: {}"
        )
        check_names(serialized, names)
        outputs = features.outputs(serialized.reshape(-1).tolist(), keys, dense_defaults)
        if serialized.ndim:
            return outputs
        *others, splits = of_one(outputs)  # one row needs no splits: TensorFlow gives none
        return *others, [one[:0] for one in splits]

    return parse


def parse_single_example(
    reading: Reading,
    *,
    num_sparse: int,
    sparse_keys: list[str],
    dense_keys: list[str],
    sparse_types: list[DataType],
    Tdense: list[DataType],
    dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    check_dense_shapes(dense_shapes)
    _check_equal("sparse_keys", len(sparse_keys), "sparse_types", len(sparse_types))
    _check_equal("num_sparse", num_sparse, "sparse_keys", len(sparse_keys))
    _check_equal("dense_keys", len(dense_keys), "dense_types", len(Tdense))
    _check_equal("dense_keys", len(dense_keys), "dense_shapes", len(dense_shapes))
    keys = [key.encode("utf-8", "surrogateescape") for key in (*sparse_keys, *dense_keys)]
    features = Features("", sparse_types, Tdense, dense_shapes, reading=reading)

    def parse(serialized: Any, dense_defaults: Any) -> Any:
        require_scalar(serialized, "Expected serialized to be a scalar, got shape: {}")
        return of_one(features.outputs([serialized.item()], keys, dense_defaults))[:4]

    return parse


def register_examples(reading: Reading, registry: KernelRegistry | None = None) -> None:
    """Register the kernels that parse Example messages, which read them by these algorithms."""
    for op, parser in (
        (PARSE_EXAMPLE, parse_example),
        (PARSE_EXAMPLE_V2, parse_example_v2),
        (PARSE_SINGLE_EXAMPLE, parse_single_example),
    ):
        register_kernel(op, factory=True, registry=registry)(MethodType(parser, reading))


register_examples(BY_COLUMNS)

_SECONDS_AN_ELEMENT = 1e-6
_OF_SIGNS = {b",": 40, b"{": 72, b"[": 64, b'"': 30}
"""The bytes that a value takes beside its text, by the sign that it begins or ends with."""

DECODE_JSONEXAMPLE = register_op(
    "DecodeJSONExample(json_examples: string) -> binary_examples: string",
    shape_fn=unchanged_shape,
    doc="The serialized Example message that each string says in JSON.",
)


@register_kernel(DECODE_JSONEXAMPLE)
def decode_json_example(json_examples: Any) -> Any:
    return map_strings(_serialized, json_examples)


def _serialized(text: bytes) -> bytes:
    """The message with its features in the order of the text and its numbers one by one."""
    from google.protobuf import json_format  # slow to import

    check_seconds(text.count(b",") * _SECONDS_AN_ELEMENT, "parsing JSON")
    check_bytes(_times_as_long(text), "values of JSON")
    example = Example()
    try:
        json_format.Parse(text, example)
        features = (json_value(text).get("features") or {}).get("feature") or {}
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"Error while parsing JSON: {error}") from None
    if not example.HasField("features"):
        return b""
    entries = [_entry(key, example.features.feature[key]) for key in features]
    return _field(1, b"".join([_field(1, entry) for entry in entries]))


def _times_as_long(text: bytes) -> int:
    """The bytes of the text as values of Python."""
    return len(text) + sum(of_one * text.count(sign) for sign, of_one in _OF_SIGNS.items())


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def _entry(key: str, feature: Feature) -> bytes:
    kind = feature.WhichOneof("kind")
    if kind is None:
        return _field(1, key.encode()) + _field(2, b"")
    if kind == "bytes_list":
        content, number = b"".join([_field(1, one) for one in feature.bytes_list.value]), 1
    elif kind == "float_list":
        packed = feature.float_list.SerializeToString()
        floats = packed[len(packed) - 4 * len(feature.float_list.value) :]
        pieces = [b"\x0d" + floats[i : i + 4] for i in range(0, len(floats), 4)]
        content, number = b"".join(pieces), 2
    else:
        numbers = feature.int64_list.value
        content, number = b"".join([b"\x08" + varint(n & 2**64 - 1) for n in numbers]), 3
    return _field(1, key.encode()) + _field(2, _field(number, content))
