"""Calls of ops, right and wrong ones: each ends alike whichever way the op is called.

Eager calls know no shape functions, as in TensorFlow: they may take what a graph refuses.
"""

import itertools
import random
from typing import Any

import numpy as np
from tools.campaigns.campaign import Finding
from tools.campaigns.damage import NODE_CHANGES
from tools.campaigns.samples import calls, graph_of_call
from tools.campaigns.ways import Outcome, check_alike, outcome_of, same

import opkernel
from opkernel.graph import Graph, Operation, import_graph_def
from opkernel.proto import OpDef
from opkernel.types import DataType, tensor_from_proto

__all__ = ["case"]

_CHANGES = [change for change in NODE_CHANGES if change.__name__.startswith("_change_")]


def case(rng: random.Random) -> str:
    """Change a call, and run it on constants, on what is fed, in a function, and at once."""
    graph_def = graph_of_call(rng.choice(calls()))
    for _ in range(rng.choice([0, 1, 1, 2])):
        rng.choice(_CHANGES)(graph_def, rng)
    graph = Graph()
    import_graph_def(graph_def, name="", graph=graph)
    called = graph.get_operations()[-1]
    fetches: list[Any] = list(called.outputs) or [called]
    word = check_alike(graph, fetches, {})
    if word == "ran" and not called.op_def.is_stateful:
        constants = [t for t in called.inputs if t.op.type == "Const"]
        check_alike(
            graph, fetches, {t: tensor_from_proto(t.op.get_attr("value")) for t in constants}
        )
        _check_eager(graph, called)
    return word


def _check_eager(graph: Graph, called: Operation) -> None:
    """Raise Finding where the op gives another result at once than in a graph."""
    if any(attr.type in ("func", "list(func)") for attr in called.op_def.attr):
        return  # eager calls know no functions of a graph
    if any(t.dtype.is_ref for t in called.inputs) or called.type in ("Placeholder", "Const"):
        return
    with opkernel.Session(graph, optimize=False) as session:
        expected = [*map(_typed, session.run(list(called.outputs)), called.output_types)]
        values = [*map(_typed, session.run(list(called.inputs)), called.input_types)]
    outcome = _at_once(called, values)
    if outcome.values is None:
        raise Finding(f"it runs in a graph; at once: {outcome.error}")
    for index, (a, b) in enumerate(zip(expected, outcome.values, strict=True)):
        if not same(a, b):
            raise Finding(f"output {index} in a graph and at once: {a!r} | {b!r}")


def _typed(value: Any, dtype: DataType) -> Any:
    """A fetched value as eager calls take and give it: with its quantised type, which sessions do not show."""
    return np.asarray(value).view(dtype.as_numpy_dtype)[()] if dtype.is_quantized else value


def _at_once(called: Operation, values: list[Any]) -> Outcome:
    inputs, rest = {}, iter(values)
    for arg in called.op_def.input_arg:
        if arg.number_attr or arg.type_list_attr:
            inputs[arg.name] = list(itertools.islice(rest, _length(called, arg)))
        else:
            inputs[arg.name] = next(rest)
    attrs = {name: called.get_attr(name) for name in _given_attrs(called.op_def)}
    return outcome_of(lambda: _flat(getattr(opkernel.raw_ops, called.type)(**inputs, **attrs)))


def _given_attrs(op_def: OpDef) -> list[str]:
    """The attrs that do not follow from the inputs."""
    inferred = {
        n for arg in op_def.input_arg for n in (arg.type_attr, arg.number_attr, arg.type_list_attr)
    }
    return [attr.name for attr in op_def.attr if attr.name not in inferred]


def _length(called: Operation, arg: OpDef.ArgDef) -> int:
    """How many tensors an argument that is a list has."""
    number = called.get_attr(arg.number_attr or arg.type_list_attr)
    return int(number) if arg.number_attr else len(number)


def _flat(result: Any) -> list[Any]:
    if result is None:
        return []
    if isinstance(result, np.ndarray | np.generic) or not isinstance(result, list | tuple):
        return [result]
    return [item for part in result for item in _flat(part)]
