"""XlaCompilationResult: a compiled program, and how its results become those of the function; and the cache of programs.

Programs stand on disk by their content (`opkernel.files.cache_folder`), so that another process need not compile them
again.

State: the files of the folder; the least recently used go where they take more than 1 GiB.
Source: TensorFlow compiler/tf2xla/xla_compiler.h.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.checkpoint.atomic_files import write_whole
from opkernel.device.budget import current_budget
from opkernel.errors import OpError, as_op_error
from opkernel.files import cache_folder
from opkernel.logs import logger
from opkernel.records import dataclass
from opkernel.runtime.engines.engine import ClusterArgument as XlaArgument
from opkernel.runtime.engines.engine import ResourceUpdate
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, wide_types

__all__ = ["OutputDescription", "ResourceUpdate", "XlaArgument", "XlaCompilationResult"]


_MOST_BYTES = 1 << 30
_LEAST_S = 0.2
"""Programs that are compiled in less time are not kept."""


def compiled(lowered: Any) -> Any:
    """The executable of a lowered program: from the disk if it is there, else compiled and put there."""
    folder = cache_folder("xla")
    if folder is None:
        return lowered.compile()
    path = Path(folder, _key(lowered))
    found = _loaded(path, lowered)
    if found is not None:
        return found
    start = time.perf_counter()
    made = lowered.compile()
    if time.perf_counter() - start >= _LEAST_S:
        _store(path, made)
    return made


def _key(lowered: Any) -> str:
    """A name that programs share which are the same, for the same compiler and processor."""
    versions = [jax().__version__, jax("jaxlib").__version__, platform.machine(), _processor()]
    flags = os.environ.get("XLA_FLAGS", "")
    text = "\n".join([*versions, flags, lowered.as_text()])
    return hashlib.sha256(text.encode()).hexdigest()


def _processor() -> str:
    """What tells processors apart that run different instructions."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as facts:
        return next((line for line in facts if line.startswith(("flags", "Features"))), "")
    return platform.processor()


def _loaded(path: Path, lowered: Any) -> Any:
    """The executable of a file; None where there is none, or it is none."""
    try:
        content = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    tree = jax("jax.tree_util")
    arguments = tree.tree_structure(lowered.args_info)
    results = tree.tree_structure(lowered.out_info)
    load = jax("jax.experimental.serialize_executable").deserialize_and_load
    try:
        return load(content, arguments, results)
    except Exception as error:  # damaged, or of another build: it is compiled again
        logger("opkernel.engines").info("%s is not used: %s", path, error)
        with suppress(OSError):
            path.unlink()
        return None


def _store(path: Path, made: Any) -> None:
    """Write an executable; what cannot be written is left out."""
    serialize = jax("jax.experimental.serialize_executable").serialize
    try:
        content, _, _ = serialize(made)
        write_whole(os.fspath(path), content)
        _make_room(path.parent)
    except (OpError, OSError, ValueError, TypeError) as error:
        logger("opkernel.engines").info("A program is not kept on disk: %s", error)


def _make_room(folder: Path) -> None:
    """Remove the files that were not used for longest, where all together are too large."""
    found = sorted(
        ((one.stat(), one) for one in folder.iterdir()), key=lambda entry: -entry[0].st_mtime
    )
    total = 0
    for facts, one in found:
        total += facts.st_size
        if total > _MOST_BYTES:
            one.unlink(missing_ok=True)


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

    With `is_kept` the program is looked for on the disk, and kept there (`compiled_cache`).
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
