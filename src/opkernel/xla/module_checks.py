"""What a StableHLO module may do: compute with its arguments, and nothing else.

A custom call is a function of the process that a module names. Those are allowed that JAX guarantees for the CPU,
with results of the shapes that LAPACK writes: its functions trust these. Whatever talks to the host or to other
devices is refused.

Source: JAX's jax/_src/export/_export.py (custom calls that are stable), jaxlib's cpu/lapack_kernels.cc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from opkernel.device.allocation import check_allocation
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.types import as_dtype
from opkernel.xla.jax_internals import CALL_TF_FUNCTION
from opkernel.xla.module_types import ArrayType, MlirOperation, array_of

_DIALECTS = frozenset({"builtin", "chlo", "func", "stablehlo"})
_REFUSED = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute"),
        *("cross-replica-sum", "infeed", "outfeed", "recv", "reduce_scatter", "send"),
    )
)
"""Operations that talk to the host or to other devices."""

_INSTEAD = {
    "AllocateBuffer": "zeros",
    "Sharding": "operand",
    "annotate_device_placement": "operand",
}
"""Custom calls that are none on one device: what takes the place of the result."""

_Shape = tuple[int, ...]
_Rule = Callable[[list[_Shape], dict[str, str]], list[_Shape]]


def check_operation(one: MlirOperation) -> str | None:
    """Refuse an operation that a module may not have; otherwise what takes its place, as `jax_internals.checked` says.

    Raises:
        InvalidArgumentError: a custom call has wrong operands or results.
        ResourceExhaustedError: a result is larger than a tensor may be.
        UnimplementedError: opkernel does not run such an operation.
    """
    if one.name.partition(".")[0] not in _DIALECTS or one.name in _REFUSED:
        raise UnimplementedError(f"The module has {one.name}, which opkernel does not run")
    for type_ in one.results:
        _check_size(type_)
    if one.name == "stablehlo.fft":
        _check_fft(one)
    return _check_custom_call(one) if one.name == "stablehlo.custom_call" else None


def _check_fft(one: MlirOperation) -> None:
    """Compare the lengths of a Fourier transform with its longer side, which XLA's runtime does not survive otherwise."""
    lengths = tuple(
        int(length) for length in re.findall(r"-?\d+", one.attrs["fft_length"].partition(":")[2])
    )
    is_complex = one.results[0].element.startswith("complex")
    longer = one.operands[0] if is_complex else one.results[0]
    sides = (longer.shape or ())[-len(lengths) :] if lengths else ()
    if not lengths or sides != lengths:
        raise InvalidArgumentError(
            f"stablehlo.fft of the module has the lengths {list(lengths)} for {longer}"
        )


def _check_size(type_: ArrayType) -> None:
    if type_.shape is None:  # a token, or a tuple
        return
    shape, dtype = array_of(type_)
    check_allocation(shape, as_dtype(dtype))


def _check_custom_call(one: MlirOperation) -> str | None:
    target = one.attrs.get("call_target_name", "").strip('"')
    if target in _INSTEAD:
        return _replacement(one, target)
    if target == CALL_TF_FUNCTION:
        return None
    shapes = _LAPACK.get(_routine(target))
    if shapes is None:
        raise UnimplementedError(
            f"The module calls {target!r}: opkernel runs the custom calls that JAX guarantees for the CPU, and no others"
        )
    if not _is_typed(one):
        raise UnimplementedError(
            f"The module calls {target!r} by an earlier interface than XLA's FFI"
        )
    _check_shapes(one, target, shapes)
    return None


def _is_typed(one: MlirOperation) -> bool:
    """Whether a custom call has XLA's FFI check its operands: the interface of version 4, or JAX's word for it."""
    version = one.attrs.get("api_version", "4").split(" ")[0]
    is_marked = "mhlo.backend_config" in one.attrs
    return version == "4" and (is_marked or one.attrs.get("backend_config", "").startswith("{"))


def _replacement(one: MlirOperation, target: str) -> str:
    wanted = (
        len(one.operands) == (0 if _INSTEAD[target] == "zeros" else 1) and len(one.results) == 1
    )
    if not wanted or (one.operands and one.operands[0] != one.results[0]):
        raise InvalidArgumentError(
            f"{target} of the module takes and gives other tensors than it may"
        )
    return _INSTEAD[target]


def _routine(target: str) -> str:
    """The routine of LAPACK that a custom call of jaxlib names: `getrf` of `lapack_sgetrf_ffi`."""
    is_lapack = (
        target.startswith("lapack_") and target.endswith("_ffi") and target[7:8] in tuple("sdcz")
    )
    name = target[8:-4] if is_lapack else ""
    return _SAME_AS.get(name, name)


_SAME_AS = {"ungqr": "orgqr", "heevd": "syevd", "hetrd": "sytrd"}
"""Routines of complex numbers that have names of their own."""


def _check_shapes(one: MlirOperation, target: str, shapes: _Rule) -> None:
    """Compare the operands and results of a call with what the routine reads and writes."""
    given = [array_of(type_)[0] for type_ in one.operands]
    try:
        # Eigenvalues of real matrices come in two parts.
        parts = "2" if target[7] in "sd" else "1"
        wanted = shapes(given, {**_config(one), _PARTS: parts})
    except (IndexError, ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"{target} of the module takes operands of other shapes"
        ) from error
    found = [array_of(type_)[0] for type_ in one.results]
    if found != wanted:
        raise InvalidArgumentError(
            f"{target} of the module gives {_listed(found)} where it writes {_listed(wanted)}"
        )


def _listed(shapes: Sequence[_Shape]) -> str:
    return ", ".join(str(list(one)) for one in shapes)


def _config(one: MlirOperation) -> dict[str, str]:
    """The attributes of the routine, as MLIR writes them."""
    text = one.attrs.get("mhlo.backend_config") or one.attrs.get("backend_config", "{}")
    pairs = (part.partition("=") for part in text.strip("{}").split(","))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _letter(config: dict[str, str], name: str) -> str:
    """The letter that an attribute is the code of."""
    return chr(int(config[name].split(" ")[0]) & 0x7F)


def _require(is_right: bool) -> None:
    if not is_right:
        raise ValueError


def _matrix(shape: _Shape) -> tuple[_Shape, int, int]:
    """The batch, the rows and the columns of a shape."""
    *batch, rows, columns = shape
    return tuple(batch), rows, columns


def _square(shape: _Shape) -> tuple[_Shape, int]:
    batch, rows, columns = _matrix(shape)
    _require(rows == columns)
    return batch, rows


def _potrf(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    return [matrix, _square(matrix)[0]]


def _geqrf(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, rows, columns = _matrix(matrix)
    return [matrix, (*batch, min(rows, columns))]


def _getrf(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    matrix, pivots = _geqrf(given, config)
    return [matrix, pivots, matrix[:-2]]


def _orgqr(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    matrix, tau = given
    batch, rows, columns = _matrix(matrix)
    _require(tau[:-1] == batch and tau[-1] <= columns <= rows)
    return [matrix]


def _syevd(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, size = _square(matrix)
    return [matrix, (*batch, size), batch]


def _geev(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, size = _square(matrix)
    values = [(*batch, size)] * int(config[_PARTS])
    return [*values, matrix, matrix, batch]


def _gees(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, size = _square(matrix)
    values = [(*batch, size)] * int(config[_PARTS])
    return [matrix, matrix, *values, batch, batch]


def _gesdd(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, rows, columns = _matrix(matrix)
    least, is_thin = min(rows, columns), _letter(config, "mode") == "S"
    left = (*batch, rows, least if is_thin else rows)
    right = (*batch, least if is_thin else columns, columns)
    return [matrix, (*batch, least), left, right, batch]


def _gehrd(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, size = _square(matrix)
    low, high = (int(config[name].split(" ")[0]) for name in ("low", "high"))
    _require(1 <= low <= high <= size)
    return [matrix, (*batch, size - 1), batch]


def _sytrd(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    (matrix,) = given
    batch, size = _square(matrix)
    _require(size > 0)
    return [matrix, (*batch, size), (*batch, size - 1), (*batch, size - 1), batch]


def _trsm(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    matrix, other = given
    batch, size = _square(matrix)
    other_batch, rows, columns = _matrix(other)
    _require(other_batch == batch and size == (rows if _letter(config, "side") == "L" else columns))
    return [other]


def _gtsv(given: list[_Shape], config: dict[str, str]) -> list[_Shape]:
    lower, diagonal, upper, other = given
    _require(lower == diagonal == upper == other[:-1])
    return [lower, diagonal, upper, other, other[:-2]]


_PARTS = "parts of a number"
_LAPACK: dict[str, _Rule] = {
    "gees": _gees,
    "geev": _geev,
    "gehrd": _gehrd,
    "geqrf": _geqrf,
    "gesdd": _gesdd,
    "getrf": _getrf,
    "gtsv": _gtsv,
    "orgqr": _orgqr,
    "potrf": _potrf,
    "syevd": _syevd,
    "sytrd": _sytrd,
    "trsm": _trsm,
}
"""The shapes that LAPACK's routines write, from those that they read; they raise where these do not fit."""
