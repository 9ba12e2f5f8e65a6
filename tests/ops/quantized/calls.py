"""Quantised arrays, and calls of ops that many tests make."""

from typing import Any

import numpy as np

from opkernel.types import as_dtype

__all__ = ["OP_CALLS", "drawn", "f32", "plain", "quantized"]

_PLAIN: dict[str, type[np.integer[Any]]] = {
    "qint8": np.int8,
    "quint8": np.uint8,
    "qint16": np.int16,
    "quint16": np.uint16,
    "qint32": np.int32,
}


def f32(value: Any) -> Any:
    return np.asarray(value, np.float32)


def quantized(name: str, values: Any) -> Any:
    """An array of the quantised type of this name."""
    return np.array(values, _PLAIN[name]).view(as_dtype(name).as_numpy_dtype)


def plain(array: Any) -> Any:
    """The integers of a quantised array; other arrays as they are."""
    array = np.asarray(array)
    return array.view(array.dtype[0]) if array.dtype.names else array


IMAGES, MATRIX = (2, 5, 4, 3), (3, 4)
_POOL = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1]}
_UNIFORM = {"quantization_min_val": -100, "quantization_max_val": 101}
_BOTH = {
    f"{side}_{name}": value for side in ("input", "output") for name, value in _UNIFORM.items()
}

OP_CALLS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {}
"""By a name: the op; the inputs, as shape and type or the name of a range's end; the attrs."""


def _add(op: str, inputs: dict[str, Any], **attrs: Any) -> None:
    OP_CALLS[f"{op}-{len(OP_CALLS)}"] = (op, inputs, attrs)


for _type in ("qint8", "quint8", "qint16", "quint16", "qint32"):
    for _mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        _add(
            "QuantizeV2",
            {"input": (IMAGES, "float"), "min_range": "low", "max_range": "high"},
            T=_type,
            mode=_mode,
        )
        _add(
            "Dequantize",
            {"input": (IMAGES, _type), "min_range": "low", "max_range": "high"},
            mode=_mode,
        )
_add(
    "QuantizeV2",
    {"input": (IMAGES, "float"), "min_range": "low", "max_range": "high"},
    T="qint8",
    mode="SCALED",
    round_mode="HALF_TO_EVEN",
    narrow_range=True,
)
for _type in ("qint8", "quint8"):
    _add(
        "Requantize",
        {
            "input": (IMAGES, "qint32"),
            "input_min": "low",
            "input_max": "high",
            "requested_output_min": "low",
            "requested_output_max": "high",
        },
        out_type=_type,
    )
    _add(
        "QuantizedMaxPool",
        {"input": (IMAGES, _type), "min_input": "low", "max_input": "high"},
        padding="SAME",
        **_POOL,
    )
    _add(
        "QuantizedAvgPool",
        {"input": (IMAGES, _type), "min_input": "low", "max_input": "high"},
        padding="SAME",
        **_POOL,
    )
    _add(
        "QuantizedBiasAdd",
        {
            "input": (IMAGES, _type),
            "bias": ((3,), _type),
            "min_input": "low",
            "max_input": "high",
            "min_bias": "low",
            "max_bias": "high",
        },
        out_type="qint32",
    )
    _add(
        "RequantizePerChannel",
        {
            "input": (IMAGES, "qint32"),
            "input_min": f32([-1, -2, -0.5]),
            "input_max": f32([1, 0.25, 3]),
            "requested_output_min": "low",
            "requested_output_max": "high",
        },
        out_type=_type,
    )
_add("RequantizationRange", {"input": (IMAGES, "qint32"), "input_min": "low", "input_max": "high"})
_add(
    "RequantizationRangePerChannel",
    {"input": (IMAGES, "qint32"), "input_min": f32([-1, -2, -0.5]), "input_max": f32([1, 0.25, 3])},
    clip_value_max=6.0,
)
_add(
    "QuantizeDownAndShrinkRange",
    {"input": (IMAGES, "qint32"), "input_min": "low", "input_max": "high"},
    out_type="quint8",
)
for _op in ("QuantizedRelu", "QuantizedRelu6"):
    for _type in ("quint8", "qint32"):
        _add(
            _op,
            {"features": (IMAGES, _type), "min_features": "low", "max_features": "high"},
            out_type=_type,
        )
for _op in ("QuantizedAdd", "QuantizedMul"):
    for _shapes in (
        (IMAGES, IMAGES),
        (IMAGES, ()),
        ((1,), MATRIX),
        (MATRIX, (4,)),
        ((4, 3), IMAGES),
    ):
        _add(
            _op,
            {
                "x": (_shapes[0], "quint8"),
                "y": (_shapes[1], "quint8"),
                "min_x": "low",
                "max_x": "high",
                "min_y": "low",
                "max_y": "high",
            },
            Toutput="qint32",
        )
for _transposed in (False, True):
    _add(
        "QuantizedMatMul",
        {
            "a": (MATRIX[::-1] if _transposed else MATRIX, "quint8"),
            "b": (MATRIX if _transposed else MATRIX[::-1], "quint8"),
            "min_a": "low",
            "max_a": "high",
            "min_b": "low",
            "max_b": "high",
        },
        Toutput="qint32",
        transpose_a=_transposed,
        transpose_b=_transposed,
    )
for _padding in ("SAME", "VALID"):
    for _stride in (1, 2, 3):
        _add(
            "QuantizedConv2D",
            {
                "input": (IMAGES, "quint8"),
                "filter": ((2, 3, 3, 4), "quint8"),
                "min_input": "low",
                "max_input": "high",
                "min_filter": "low",
                "max_filter": "high",
            },
            out_type="qint32",
            strides=[1, _stride, _stride, 1],
            padding=_padding,
        )
for _given in (False, True):
    _add(
        "QuantizedInstanceNorm",
        {"x": (IMAGES, "quint8"), "x_min": "low", "x_max": "high"},
        output_range_given=_given,
        given_y_min=-1.5,
        given_y_max=2.0,
    )
for _type in ("quint8", "qint32", "float"):
    for _half in (False, True):
        _add(
            "QuantizedResizeBilinear",
            {"images": (IMAGES, _type), "size": np.int32([7, 3]), "min": "low", "max": "high"},
            half_pixel_centers=_half,
        )
_add(
    "QuantizedBatchNormWithGlobalNormalization",
    {
        "t": (IMAGES, "quint8"),
        "t_min": "low",
        "t_max": "high",
        "m": ((3,), "quint8"),
        "m_min": "low",
        "m_max": "high",
        "v": ((3,), "quint8"),
        "v_min": f32(0.5),
        "v_max": "high",
        "beta": ((3,), "quint8"),
        "beta_min": "low",
        "beta_max": "high",
        "gamma": ((3,), "quint8"),
        "gamma_min": "low",
        "gamma_max": "high",
    },
    out_type="qint32",
    variance_epsilon=0.001,
    scale_after_normalization=True,
)
for _type in ("qint8", "quint8", "qint32"):
    _add(
        "UniformQuantize",
        {"input": (IMAGES, "float"), "scales": f32(0.0123), "zero_points": np.int32(7)},
        Tout=_type,
        **_UNIFORM,
    )
    _add(
        "UniformQuantize",
        {
            "input": (IMAGES, "float"),
            "scales": f32([0.1, 0.02, 0.3]),
            "zero_points": np.int32([7, -3, 0]),
        },
        Tout=_type,
        quantization_axis=3,
        **_UNIFORM,
    )
    _add(
        "UniformDequantize",
        {
            "input": (IMAGES, _type),
            "scales": f32([0.1, 0.02, 0.3]),
            "zero_points": np.int32([7, -3, 0]),
        },
        Tout="float",
        quantization_axis=3,
        **_UNIFORM,
    )
for _type in ("qint8", "qint32"):
    _add(
        "UniformRequantize",
        {
            "input": (IMAGES, _type),
            "input_scales": f32([0.1, 0.02, 0.3]),
            "input_zero_points": np.int32([7, -3, 0]),
            "output_scales": f32(0.07),
            "output_zero_points": np.int32(11),
        },
        Tout="qint8",
        input_quantization_axis=3,
        **_BOTH,
    )


def drawn(spec: Any, rng: np.random.Generator, ends: tuple[float, float]) -> tuple[Any, str]:
    """A value for an input of OP_CALLS, its integers plain, and the name of its type."""
    if isinstance(spec, str):
        return f32(ends[spec == "high"]), "float"
    if isinstance(spec, (np.ndarray, np.generic)):
        return spec, "float" if spec.dtype == np.float32 else "int32"
    shape, name = spec
    if name == "float":
        return rng.uniform(ends[0] - 0.2, ends[1] + 0.2, shape).astype(np.float32), name
    limits = np.iinfo(_PLAIN[name])
    return rng.integers(limits.min, limits.max, shape, dtype=_PLAIN[name], endpoint=True), name
