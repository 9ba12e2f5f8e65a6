"""Shapes of ops that parse serialized examples, CSV and raw bytes.

Source: TensorFlow core/ops/parsing_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.ops.declared.parse_example import PARSE_EXAMPLE_SHAPE_FNS
from opkernel.ops.declared.rules import set_outputs


def _decode_raw(c: InferenceContext) -> None:
    c.set_output(0, c.concatenate(c.input(0), c.vector(None)))


def _decode_padded_raw(c: InferenceContext) -> None:
    width = c.make_dim_for_scalar_input(1)
    size = c.get_attr("out_type").size
    c.set_output(0, c.concatenate(c.input(0), c.vector(c.divide(width, size, True))))


def check_csv_defaults(c: InferenceContext, start: int, stop: int) -> None:
    """The inputs from `start` to `stop` are scalars, or vectors of one value or none."""
    for i in range(start, stop):
        default = c.with_rank_at_most(c.input(i), 1)
        if c.rank(default) == 1 and c.dim(default, 0).value > 1:
            raise InvalidArgumentError(
                "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            )


def _decode_csv(c: InferenceContext) -> None:
    check_csv_defaults(c, 1, c.num_inputs())
    set_outputs(c, [c.input(0)] * c.num_outputs())


def _decode_proto(c: InferenceContext) -> None:
    fields = len(c.get_attr("output_types"))
    lengths: list[int | None] = [fields, *[None] * fields]
    set_outputs(c, [c.concatenate(c.input(0), c.vector(length)) for length in lengths])


def _encode_proto(c: InferenceContext) -> None:
    batch = c.unknown_shape()
    for i in reversed(range(1, c.num_inputs())):
        values = c.with_rank_at_least(c.input(i), 2)
        batch = c.merge(c.subshape(values, 0, -1), batch)
    c.set_output(0, batch)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **PARSE_EXAMPLE_SHAPE_FNS,
    "DecodeCSV": _decode_csv,
    "DecodeCompressed": unchanged_shape,
    "DecodeJSONExample": unchanged_shape,
    "DecodePaddedRaw": _decode_padded_raw,
    "DecodeProtoV2": _decode_proto,
    "DecodeRaw": _decode_raw,
    "EncodeProto": _encode_proto,
    "ParseTensor": unknown_shape,
    "SerializeTensor": scalar_shape,
}
