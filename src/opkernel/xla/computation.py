"""XlaCompilationResult: a compiled program, and how its results become those of the function.

State: `_programs` has the programs of this process and, on disk, those of others.
Source: TensorFlow compiler/tf2xla/xla_compiler.h.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.errors import as_op_error
from opkernel.records import dataclass
from opkernel.runtime.engines.engine import ClusterArgument as XlaArgument
from opkernel.runtime.engines.engine import ResourceUpdate
from opkernel.runtime.engines.program_cache import Compilation, ProgramCache, content_key
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, wide_types

__all__ = ["OutputDescription", "ResourceUpdate", "XlaArgument", "XlaCompilationResult"]


_programs = ProgramCache[Any]("xla", 1 << 30)


def compiled(lowered: Any) -> Any:
    """The executable of a lowered program: of this process or from the disk if it is there, else compiled."""
    versions = jax().__version__, jax("jaxlib").__version__
    key = content_key([*versions, os.environ.get("XLA_FLAGS", ""), lowered.as_text()])
    return _programs.program(key, Compilation(lowered.compile, partial(_loaded, lowered), _content))


def _loaded(lowered: Any, content: memoryview) -> Any:
    """The executable with some content."""
    tree = jax("jax.tree_util")
    arguments = tree.tree_structure(lowered.args_info)
    results = tree.tree_structure(lowered.out_info)
    load = jax("jax.experimental.serialize_executable").deserialize_and_load
    return load(bytes(content), arguments, results)


def _content(made: Any) -> bytes:
    """The content of an executable, for a file."""
    content: bytes = jax("jax.experimental.serialize_executable").serialize(made)[0]
    return content


GENERATOR_SHAPE = (3,)
"""The shape of a generator of random numbers: a counter of two numbers and a key, int64."""


@dataclass(frozen=True, eq=False)
class OutputDescription:
    """A result of a compiled function.

    Attributes:
        dtype: Its type.
        shape: Its shape.
        constant: Its value where that was known at compile time; the program does not compute it.
        input_index: The argument that it is, if it is a resource; -1 otherwise.
    """

    dtype: DataType
    shape: tuple[int, ...]
    constant: Any = None
    input_index: int = -1


class XlaCompilationResult:
    """A compiled function.

    Attributes:
        arguments: What it was compiled for.
        outputs: Its results.
        resource_updates: The resources that it writes.
        input_mapping: The arguments of the function that are parameters of the program, in their order.
        draws_numbers: Whether a generator of random numbers is the last parameter of the program; each run has
            one that the system chooses.
        held: The values of parameters that runs need not give, by the argument.

    With `is_kept` the program is looked for on the disk, and kept there (`ProgramCache`).
    """

    def __init__(
        self,
        arguments: Sequence[XlaArgument],
        input_mapping: Sequence[int],
        outputs: Sequence[OutputDescription],
        resource_updates: Sequence[ResourceUpdate],
        lowered: Any,
        draws_numbers: bool = False,
        *,
        is_kept: bool = False,
    ) -> None:
        self.arguments = tuple(arguments)
        self.outputs, self.resource_updates = tuple(outputs), tuple(resource_updates)
        self.input_mapping, self.draws_numbers = tuple(input_mapping), draws_numbers
        self.held: Mapping[int, Any] = {}
        self._lowered = lowered
        self._compiled = compiled(lowered) if is_kept else lowered.compile()

    def stablehlo(self) -> str:
        """The program in the text form of StableHLO."""
        return str(self._lowered.as_text())

    def run(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run the program.

        Args:
            inputs: A value for each argument; of a resource, its value; of a constant, anything.

        Returns:
            The results (the index of the argument for resources), and the new values of the resources
            that `resource_updates` lists. Arrays are read-only.

        Raises:
            InvalidArgumentError: an input has another shape or type than the argument.
            OpError: JAX cannot run the program, or NumPy not hold a result.
            ResourceExhaustedError: it needs more memory than the budget of this thread has.
        """
        held = self.held
        given = [self._checked(i, held.get(i, inputs[i])) for i in self.input_mapping]
        if self.draws_numbers:
            size = math.prod(GENERATOR_SHAPE)
            given.append(np.frombuffer(os.urandom(8 * size), np.int64).reshape(GENERATOR_SHAPE))
        budget = current_budget()
        if budget is not None and budget.memory_limit_bytes is not None:
            budget.check_memory(self._working_bytes, "what a program of XLA computes with")
        with wide_types():
            try:
                computed = [np.asarray(value) for value in self._compiled(*given)]
            except Exception as error:
                raise as_op_error(error) from error
        remaining = iter(computed)
        results = [self._result(output, remaining) for output in self.outputs]
        return results, [*remaining]

    @cached_property
    def _working_bytes(self) -> int:
        """The memory for results and what they are computed from."""
        known = self._compiled.memory_analysis()
        return int(known.temp_size_in_bytes + known.output_size_in_bytes)

    def _checked(self, place: int, value: Any) -> Any:
        array = value if isinstance(value, jax().Array) else np.asarray(value)
        self.arguments[place].check(place, array)
        return array

    @staticmethod
    def _result(output: OutputDescription, computed: Any) -> Any:
        if output.input_index >= 0:
            return output.input_index
        return next(computed) if output.constant is None else output.constant
