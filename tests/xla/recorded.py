"""Recorded op calls of TensorFlow, compiled: what the tests of XLA's kernels and their matrix share."""

import functools
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.opdef import global_op_registry
from opkernel.opdef.core.node_def import input_types_for_node
from opkernel.testing.op_runs import node_of
from opkernel.types import PartialTensorShape, as_dtype
from opkernel.xla import XlaArgument, XlaCompiler, global_xla_op_registry

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"


def compiled(op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
    """The outputs of an op compiled by itself: constants where it asks for them, else parameters."""
    op_def = global_op_registry().look_up_op_def(op)
    node = node_of(op_def, attrs)
    constants = global_xla_op_registry().compile_time_constant_input_arg_names(op)
    types = iter(input_types_for_node(node, op_def))
    arguments, values = [], []
    for arg, given in zip(op_def.input_arg, inputs, strict=True):
        for value in given if isinstance(given, list) else [given]:
            array, dtype = np.asarray(value), next(types)
            is_constant = arg.name in constants
            arguments.append(
                XlaArgument("constant", dtype, array.shape, array)
                if is_constant
                else XlaArgument.parameter(dtype, array.shape)
            )
            values.append(array)
    results, _ = XlaCompiler().compile_single_op(node, arguments).run(values)
    return results


def python_attrs(vector: Any) -> dict[str, Any]:
    """The attrs of a recorded call as Python values."""
    return {name: _attr(kind, value) for name, (kind, value) in vector.attrs.items()}


def _attr(kind: str, value: Any) -> Any:
    if kind == "type":
        return as_dtype(value)
    if kind == "shape":
        return PartialTensorShape(None if value is None else [None if d < 0 else d for d in value])
    if kind.startswith("list("):
        return [_attr(kind[5:-1], one) for one in value]
    return value


def vectors_of(ops: set[str] | None, path: Path = VECTORS) -> Iterator[Any]:
    """The recorded calls of some ops, of all families or of a file's."""
    yield from _reader().iter_vectors(str(path), ops)


@functools.cache
def _reader() -> Any:
    """The module that reads the recorded calls, from beside them."""
    spec = importlib.util.spec_from_file_location("read_vectors", VECTORS / "read_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(found: Any, recorded: Any) -> Any:
    """What is wrong with an output; None where it is right."""
    return _reader().compare(found, recorded)


def has_kernel(op: str) -> bool:
    """Whether XLA compiles the op."""
    return bool(global_xla_op_registry().registrations(op))


def verdict(vector: Any) -> str:
    """`right`, `wrong`, `refused: why`, or `lenient`: compiled code cannot refuse values."""
    try:
        found = compiled(vector.op, vector.inputs, python_attrs(vector))
    except OpError as error:
        if vector.error:
            return "right"
        return f"refused: {error.message[:300]}"
    if vector.error:
        return "lenient"
    wanted = [
        one for group in vector.outputs for one in (group if isinstance(group, list) else [group])
    ]
    for got, want in zip(found, wanted, strict=True):
        if want is not None:
            problem = compare(np.asarray(got), want)
            if problem not in (None, True, ""):
                return f"wrong: {problem}"
    return "right"


def report(ops: set[str], limit: int = 10**9, show: int = 1) -> None:
    """Print a line for each op, with what is not right."""
    counts: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    for vector in vectors_of(ops):
        count = counts.setdefault(vector.op, Counter())
        if sum(count.values()) >= limit:
            continue
        found = verdict(vector)
        kind = found.partition(":")[0]
        count[kind] += 1
        if kind in ("wrong", "refused") and shown[vector.op] < show:
            shown[vector.op] += 1
            shapes = [getattr(x, "shape", x) for x in vector.inputs]
            types = [str(getattr(x, "dtype", "")) for x in vector.inputs]
            attrs = {k: v for k, (_, v) in vector.attrs.items()}
            print(f"  {vector.op} {vector.id} {types} {shapes} {attrs}: {found}"[:900], flush=True)
    for op in sorted(counts):
        print(op, dict(counts[op]), flush=True)


if __name__ == "__main__":
    names = set(sys.argv[1].split(","))
    report(names, int(sys.argv[2]) if len(sys.argv) > 2 else 10**9, 2)
