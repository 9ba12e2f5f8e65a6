"""A StableHLO module for the arguments of one call: static shapes, and only operations that a module may have.

State: the modules that were prepared last, by their content and arguments.

Source: TensorFlow compiler/jit/kernels or tf2xla/kernels/xla_call_module_loader.cc.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError, as_op_error
from opkernel.records import dataclass
from opkernel.runtime.session.executables import LruCache
from opkernel.types import as_dtype
from opkernel.xla.jax_internals import checked, refined, signature_of
from opkernel.xla.jax_numpy import jax
from opkernel.xla.module_checks import check_operation
from opkernel.xla.module_types import ArrayType, Given, Signature, array_of
from opkernel.xla.stablehlo_reader import module_of

Argument = tuple[tuple[int, ...], Any]
"""The shape of an array, and NumPy's type of its elements."""


@dataclass(frozen=True)
class PreparedModule:
    """A module whose `main` takes the arguments of a call.

    Attributes:
        bytecode: The module in MLIR's bytecode.
        results: The shapes and types of its results.
        num_functions: How many functions of TensorFlow it needs.
    """

    bytecode: bytes
    results: Sequence[Argument]
    num_functions: int


_prepared: LruCache[Hashable, PreparedModule] = LruCache(64)


def prepared(
    artifact: bytes,
    arguments: Sequence[Argument],
    platform_index: int | None,
    *,
    checks_shapes: bool,
) -> PreparedModule:
    """A module for some arguments.

    Args:
        artifact: The module as XlaCallModule has it.
        arguments: The shapes and types of what it is called with.
        platform_index: The number of the platform, where the module is for several.
        checks_shapes: Whether its assertions about shapes are checked.

    Raises:
        InvalidArgumentError: the artifact is damaged, or does not take such arguments.
        UnimplementedError: it has operations that opkernel does not run, or JAX is not installed.
    """
    types = tuple([(shape, str(dtype)) for shape, dtype in arguments])
    key = hashlib.sha256(artifact).digest(), types, platform_index, checks_shapes
    found = _prepared.find(key)
    if found is None:
        module = module_of(artifact)
        try:
            made = _made(module, arguments, platform_index, checks_shapes)
        except OpError:
            raise
        except Exception as error:
            raise _reported(error) from error
        found = _prepared.keep(key, made)
    return found


def _made(
    module: bytes,
    arguments: Sequence[Argument],
    platform_index: int | None,
    checks_shapes: bool,
) -> PreparedModule:
    signature = signature_of(module)
    if signature.num_partitions != 1:
        raise UnimplementedError(
            f"The module is for {signature.num_partitions} devices, and opkernel runs modules on one"
        )
    given = _given(signature, arguments, platform_index)
    static = refined(module, given, checks_shapes=checks_shapes)
    bytecode, called = checked(static, check_operation)
    results = [array_of(one) for one in signature_of(bytecode).results]
    return PreparedModule(bytecode, results, max([one.index + 1 for one in called], default=0))


def _given(
    signature: Signature, arguments: Sequence[Argument], platform_index: int | None
) -> list[Given]:
    """What each input of `main` is given: the platform, tokens, and then the arguments.

    Raises:
        InvalidArgumentError: there are more or fewer inputs, or others.
    """
    inputs = list(signature.inputs)
    given = []
    if platform_index is not None:
        if not inputs or inputs[0].shape != () or inputs[0].element not in ("i32", "i64"):
            raise InvalidArgumentError(
                "The module is for several platforms, and its first argument is no scalar of integers"
            )
        given.append(Given(constant=platform_index))
    rest = inputs[len(given) :]
    count = sum(not one.is_token for one in rest)
    if count != len(arguments):
        raise InvalidArgumentError(
            f"Incorrect number of arguments passed to XlaCallModule = {len(arguments)}. It must be called with {count} because "
            f"the module main function takes {len(inputs)} arguments of which {len(given)} platform index arguments, and "
            f"{len(rest) - count} token arguments."
        )
    remaining = iter(enumerate(arguments))
    return given + [Given() if one.is_token else _argument(*next(remaining), one) for one in rest]


def _argument(number: int, argument: Argument, wanted: ArrayType) -> Given:
    shape, dtype = argument
    if wanted.shape is None:
        raise InvalidArgumentError(f"Argument {number} of the module is {wanted}, and no tensor")
    is_static = [size if known < 0 else known for size, known in zip(shape, wanted.shape)]  # noqa: B905  # ranks differ
    if len(shape) != len(wanted.shape) or is_static != list(shape):
        raise InvalidArgumentError(
            f"Shape mismatch for argument {number} passed to XlaCallModule: expecting {wanted}, got "
            f"{as_dtype(dtype).string}{list(shape)}"
        )
    expected = array_of(ArrayType((), wanted.element))[1]
    if dtype != expected:
        raise InvalidArgumentError(
            f"Element type mismatch for argument {number} passed to XlaCallModule: expecting {wanted}, got "
            f"{as_dtype(dtype).string}"
        )
    return Given(shape=tuple(shape), dtype=dtype)


def _reported(error: Exception) -> OpError:
    """An error of MLIR: the module, or the shapes of the arguments, are wrong."""
    kinds = (jax("jax.errors").JaxRuntimeError, jax("jaxlib.mlir.ir").MLIRError)
    if not isinstance(error, (*kinds, ValueError, RuntimeError)):
        return as_op_error(error)
    return InvalidArgumentError(f"The module does not fit the call: {error}")
