"""Recorded op calls of TensorFlow, each compiled by an engine as a cluster of one node."""

import sys
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from tests.engines.clusters import arguments_for, single_op
from tests.xla.recorded import compare, python_attrs, vectors_of

from opkernel.errors import OpError
from opkernel.opdef import global_op_registry
from opkernel.proto import NodeDef
from opkernel.runtime.engines.engine import ClusterArgument, Engine, engine_named
from opkernel.testing.op_runs import node_of


def flat(groups: Any) -> list[Any]:
    """Arrays of arguments, those of list arguments among them."""
    return [one for group in groups for one in (group if isinstance(group, list) else [group])]


def node_and_values(vector: Any) -> tuple[NodeDef, list[Any]]:
    """The node of a call, and its inputs."""
    op_def = global_op_registry().look_up_op_def(vector.op)
    return node_of(op_def, python_attrs(vector)), [np.asarray(one) for one in flat(vector.inputs)]


def verdict(engine: Engine, vector: Any, *, is_frozen: bool = False) -> str:
    """`right`, `wrong: how`, `outside: why` for calls that the engine does not take, or `refused: why`.

    Args:
        engine: The engine.
        vector: The call.
        is_frozen: Whether all inputs but the first are constants, as the weights of a model.
    """
    node, values = node_and_values(vector)
    try:
        body = single_op(node, values)
    except OpError as error:
        return f"refused: {type(error).__name__}: {error.message}"
    reason = engine.refusal(body.ret_nodes[0].inputs[0].op)
    if reason:
        return f"outside: {reason}"
    arguments = arguments_for(engine, body, values)
    if is_frozen:
        arguments[1:] = [ClusterArgument.of_constant(value) for value in values[1:]]
    try:
        found, _ = engine.compile(body, arguments).run(values)
    except OpError as error:
        return f"refused: {type(error).__name__}: {error.message}"
    for got, want in zip(found, flat(vector.outputs), strict=True):
        problem = None if want is None else compare(np.asarray(got), want)
        if problem:
            return f"wrong: {problem}"
    return "right"


def is_finite(vector: Any) -> bool:
    """Whether neither the inputs nor the outputs of a call have NaN or infinities."""
    arrays = [np.asarray(one) for one in flat([*vector.inputs, *vector.outputs]) if one is not None]
    return all(np.isfinite(one).all() for one in arrays if one.dtype.kind == "f")


def report(engine: Engine, ops: set[str] | None, limit: int = 10**9) -> None:
    """Print a line for each op, and what was wrong with its first calls."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    shown: Counter[str] = Counter()
    for vector in vectors_of(ops):
        if vector.error or (count := counts[vector.op]).total() >= limit:
            continue
        for is_frozen in (False, True):
            found = verdict(engine, vector, is_frozen=is_frozen)
            kind = found.partition(":")[0]
            if kind == "wrong":
                kind += " (finite)" if is_finite(vector) else " (not finite)"
            count[kind] += 1
            if kind.startswith(("wrong", "refused")) and shown[vector.op + kind] < 2:
                shown[vector.op + kind] += 1
                shapes = [getattr(x, "shape", x) for x in flat(vector.inputs)]
                attrs = {k: v for k, (_, v) in vector.attrs.items()}
                print(f"  {vector.op} {vector.id} {shapes} {attrs}: {found}"[:700], flush=True)
    for op in sorted(counts):
        print(op, dict(counts[op]), flush=True)


if __name__ == "__main__":
    report(engine_named(sys.argv[1]), set(sys.argv[2].split(",")) if len(sys.argv) > 2 else None)
