"""Completion in shells: ops, and the nodes, inputs and tensors of the model that stands before.

A tensor is offered by the name of its node, which means its first output.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from opkernel.errors import OpError

if TYPE_CHECKING:
    from opkernel.cli.model import Model


def _offering(
    names: Callable[[click.Context], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Have a shell offer names that begin so, each once, and none that a terminal could not show.

    Nothing is offered where no model can be read.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        with suppress(OpError, OSError, click.ClickException):
            found = {one for one in names(ctx) if one.startswith(incomplete) and one.isprintable()}
            return sorted(found)
        return []

    complete.__doc__ = names.__doc__
    return complete


@_offering
def complete_ops(ctx: click.Context) -> Iterable[str]:
    """The ops that are known."""
    from opkernel.opdef import global_op_registry

    return (op.name for op in global_op_registry().export().op)


@_offering
def complete_ops_of_model(ctx: click.Context) -> Iterable[str]:
    """The ops of the nodes of the model."""
    return (op for _, op in _nodes(ctx))


@_offering
def complete_nodes(ctx: click.Context) -> Iterable[str]:
    """The nodes of the model, and the nodes of its functions as FUNCTION/NODE."""
    return (name for name, _ in _nodes(ctx))


@_offering
def complete_tensors(ctx: click.Context) -> Iterable[str]:
    """The tensors of the model."""
    return (name for name, _ in _nodes(ctx, in_functions=False))


@_offering
def complete_feeds(ctx: click.Context) -> Iterable[str]:
    """`NAME=` for the inputs of the model."""
    return (f"{name}=" for name in _inputs(ctx))


@_offering
def _complete_outputs(ctx: click.Context) -> Iterable[str]:
    return _ports(ctx, "outputs")


def complete_fetches(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The outputs of the signature, where the model has some that begin so; else its tensors."""
    return _complete_outputs(ctx, param, incomplete) or complete_tensors(ctx, param, incomplete)


@_offering
def complete_shapes(ctx: click.Context) -> Iterable[str]:
    """`NAME:` for the inputs of the model."""
    return (f"{name}:" for name in _inputs(ctx))


@_offering
def complete_signatures(ctx: click.Context) -> Iterable[str]:
    """The signatures of the SavedModel."""
    from opkernel.cli.signature import signature_names

    model = _model(ctx)
    return signature_names(model.meta_graph) if model and model.is_saved_model else ()


@_offering
def complete_tag_sets(ctx: click.Context) -> Iterable[str]:
    """The tags of the MetaGraphs of the SavedModel, as `--tag_set` takes them."""
    model = _model(ctx)
    files = model.files if model and model.is_saved_model else None
    return () if files is None else (",".join(tags) for tags in files.tag_sets)


def _inputs(ctx: click.Context) -> Iterable[str]:
    from opkernel.graph.core.structural_ops import ARG_OPS, INPUT_OPS

    nodes = _nodes(ctx, in_functions=False)
    return _ports(ctx, "inputs") or (name for name, op in nodes if op in INPUT_OPS | ARG_OPS)


def _ports(ctx: click.Context, which: str) -> list[str]:
    """The inputs or outputs of the signature that is meant; none where there is none."""
    from opkernel.cli.signature import choose_signature, ports_of

    model = _model(ctx)
    with suppress(OpError, OSError, click.ClickException):
        if model is not None and model.is_saved_model:
            name = choose_signature(model.meta_graph, model.signature_name)
            if name is not None:
                ports = ports_of(getattr(model.meta_graph.signature_def[name], which))
                return [port.name for port in ports]
    return []


def _model(ctx: click.Context) -> Model | None:
    """The model of a command line; None where none stands there yet."""
    from opkernel.cli.files import InputFile
    from opkernel.cli.model import Model

    # Behind an option that has no value yet click has not told arguments apart.
    path = str(ctx.params.get("model") or next(iter(ctx.args), ""))
    if not os.path.exists(path):
        return None
    return Model(InputFile(path), ctx.params.get("tag_set"), ctx.params.get("signature_def"))


def _nodes(ctx: click.Context, *, in_functions: bool = True) -> Iterator[tuple[str, str]]:
    """The nodes of the model of a command line, and their ops."""
    model = _model(ctx)
    if model is not None:
        graph = model.graph_def()
        yield from ((node.name, node.op) for node in graph.node)
        for function in graph.library.function if in_functions else ():
            name = function.signature.name
            yield from ((f"{name}/{node.name}", node.op) for node in function.node_def)
