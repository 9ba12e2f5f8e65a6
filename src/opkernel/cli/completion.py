"""Completion in shells: ops, and the nodes, inputs and tensors of the model that stands before.

A tensor is offered by the name of its node, which means its first output.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

import click

from opkernel.errors import OpError

__all__ = [
    "complete_feeds",
    "complete_nodes",
    "complete_ops",
    "complete_ops_of_model",
    "complete_shapes",
    "complete_tensors",
]


def complete_ops(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The ops that are known."""
    from opkernel.opdef import global_op_registry

    names = (op.name for op in global_op_registry().export().op)
    return _beginning(names, incomplete)


def complete_ops_of_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The ops of the nodes of the model."""
    return _beginning((op for _, op in _nodes(ctx)), incomplete)


def complete_nodes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The nodes of the model, and the nodes of its functions as FUNCTION/NODE."""
    return _beginning((name for name, _ in _nodes(ctx)), incomplete)


def complete_tensors(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The tensors of the model."""
    return _beginning((name for name, _ in _nodes(ctx, in_functions=False)), incomplete)


def complete_feeds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`NAME=` for the inputs of the model."""
    return _beginning((f"{name}=" for name in _inputs(ctx)), incomplete)


def complete_shapes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`NAME:` for the inputs of the model."""
    return _beginning((f"{name}:" for name in _inputs(ctx)), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin so, each once, and none that a terminal could not show."""
    found = {name for name in names if name.startswith(incomplete) and name.isprintable()}
    return sorted(found)


def _inputs(ctx: click.Context) -> Iterator[str]:
    from opkernel.graph.core.structural_ops import ARG_OPS, INPUT_OPS

    return (name for name, op in _nodes(ctx, in_functions=False) if op in INPUT_OPS | ARG_OPS)


def _nodes(ctx: click.Context, *, in_functions: bool = True) -> Iterator[tuple[str, str]]:
    """The nodes of the model of a command line, and their ops; none if no model can be read."""
    from opkernel.graph import load_graph_def

    # Behind an option that has no value yet click has not told arguments apart.
    path = str(ctx.params.get("model") or next(iter(ctx.args), ""))
    if not os.path.isfile(path):
        return
    with suppress(OpError, OSError):
        graph = load_graph_def(path)
        yield from ((node.name, node.op) for node in graph.node)
        for function in graph.library.function if in_functions else ():
            name = function.signature.name
            yield from ((f"{name}/{node.name}", node.op) for node in function.node_def)
