"""Types and signatures of StableHLO modules, without the objects of MLIR.

Source: StableHLO's specification, section Types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.records import dataclass
from opkernel.xla.jax_numpy import jax


@dataclass(frozen=True)
class ArrayType:
    """The type of an array of a module.

    Attributes:
        shape: The shape; -1 for a dimension that is not static. None where the type is no ranked tensor.
        element: The element type as MLIR writes it: `f32`, `complex<f32>`, `!stablehlo.token` for a token.
    """

    shape: tuple[int, ...] | None
    element: str

    @property
    def is_token(self) -> bool:
        """Whether it is a token, which orders effects and holds nothing."""
        return self.element == "!stablehlo.token"

    def __str__(self) -> str:
        if self.shape is None:
            return self.element
        sizes = ["?" if size < 0 else str(size) for size in self.shape]
        return f"tensor<{'x'.join([*sizes, self.element])}>"


@dataclass(frozen=True, eq=False)
class MlirOperation:
    """An operation of a module, as checks look at it.

    Attributes:
        name: Its name, such as `stablehlo.add`.
        operands, results: Their types.
        attrs: The attributes as MLIR writes them, of those operations whose attributes are checked.
        raw: The operation itself.
    """

    name: str
    operands: Sequence[ArrayType]
    results: Sequence[ArrayType]
    attrs: dict[str, str]
    raw: Any


@dataclass(frozen=True)
class Signature:
    """What the function `main` of a module takes and gives.

    Attributes:
        inputs, results: The types.
        num_partitions: The number of devices that the module is for.
    """

    inputs: Sequence[ArrayType]
    results: Sequence[ArrayType]
    num_partitions: int


@dataclass(frozen=True)
class Given:
    """What `main` is given in the place of one of its inputs.

    Attributes:
        constant: A scalar; None for an argument of the call, or a token.
        shape: The shape of the argument; None for a constant or a token.
        dtype: The type of its elements in NumPy.
    """

    constant: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: Any = None


@dataclass(frozen=True, eq=False)
class CalledFunction:
    """A call of a function of TensorFlow in a module.

    Attributes:
        index: Which of the functions that the operation names.
        has_token: Whether a token is the first operand and the first result.
    """

    index: int
    has_token: bool


@dataclass(frozen=True, eq=False)
class StaticModule:
    """A module that a program can call.

    Attributes:
        bytecode: The module, with static shapes.
        results: The shapes and types of its results.
        function: Gives the results of a function of TensorFlow: its number among those that the operation names, then
            its arguments.
    """

    bytecode: bytes
    results: Sequence[tuple[tuple[int, ...], Any]]
    function: Callable[..., Sequence[Any]] | None = None


_DTYPES = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "i1": "bool",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
_OTHER_DTYPES = {
    "bf16": "bfloat16",
    "i4": "int4",
    "ui4": "uint4",
    **{f"f8{kind}": f"float8_{kind.lower()}" for kind in ("E4M3FN", "E5M2")},
    **{f"f8{kind}": f"float8_{kind.lower()}" for kind in ("E4M3B11FNUZ", "E4M3FNUZ", "E5M2FNUZ")},
}
"""Types that `ml_dtypes` has."""


def array_of(type_: ArrayType) -> tuple[tuple[int, ...], Any]:
    """The shape and NumPy's type of a static type.

    Raises:
        UnimplementedError: arrays of NumPy have no such elements.
        InvalidArgumentError: it is no tensor of a static shape.
    """
    if type_.shape is None or min(type_.shape, default=0) < 0:
        raise InvalidArgumentError(f"The module has {type_} where a static shape is needed")
    if type_.element in _DTYPES:
        return type_.shape, np.dtype(_DTYPES[type_.element])
    if type_.element in _OTHER_DTYPES:
        return type_.shape, np.dtype(getattr(jax("ml_dtypes"), _OTHER_DTYPES[type_.element]))
    raise UnimplementedError(f"The module has {type_}, whose elements NumPy does not have")
