"""Completion in shells: ops, and the nodes, inputs and tensors of the model that stands before.

A tensor is offered by the name of its node, which means its first output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from opkernel.errors import OpError

if TYPE_CHECKING:
    from opkernel.cli.model import Model


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


def complete_fetches(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The outputs of the signature, where the model has one; else its tensors."""
    return _ports(ctx, "outputs", incomplete) or complete_tensors(ctx, param, incomplete)


def complete_shapes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`NAME:` for the inputs of the model."""
    return _beginning((f"{name}:" for name in _inputs(ctx)), incomplete)


def complete_signatures(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The signatures of the SavedModel."""
    from opkernel.cli.signature_ports import signature_names

    model = _model(ctx)
    with suppress(OpError, OSError, click.ClickException):
        if model is not None and model.is_saved_model:
            return _beginning(signature_names(model.meta_graph), incomplete)
    return []


def complete_tag_sets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The tags of the MetaGraphs of the SavedModel, as `--tag_set` takes them."""
    model = _model(ctx)
    with suppress(OpError, OSError, click.ClickException):
        if model is not None and model.is_saved_model and model.files is not None:
            return _beginning((",".join(tags) for tags in model.files.tag_sets), incomplete)
    return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin so, each once, and none that a terminal could not show."""
    found = {name for name in names if name.startswith(incomplete) and name.isprintable()}
    return sorted(found)


def _inputs(ctx: click.Context) -> Iterable[str]:
    from opkernel.graph.core.structural_ops import ARG_OPS, INPUT_OPS

    named = _ports(ctx, "inputs", "")
    nodes = _nodes(ctx, in_functions=False)
    return named or (name for name, op in nodes if op in INPUT_OPS | ARG_OPS)


def _ports(ctx: click.Context, which: str, incomplete: str) -> list[str]:
    """The inputs or outputs of the signature that is meant; none where there is none."""
    from opkernel.cli.signature_ports import choose_signature, ports_of

    model = _model(ctx)
    with suppress(OpError, OSError, click.ClickException):
        if model is not None and model.is_saved_model:
            name = choose_signature(model.meta_graph, model.signature_name)
            if name is not None:
                ports = ports_of(getattr(model.meta_graph.signature_def[name], which))
                return _beginning((port.name for port in ports), incomplete)
    return []


def _model(ctx: click.Context) -> Model | None:
    """The model of a command line; None where none stands there yet."""
    from opkernel.cli.input_file import InputFile
    from opkernel.cli.model import Model

    # Behind an option that has no value yet click has not told arguments apart.
    path = str(ctx.params.get("model") or next(iter(ctx.args), ""))
    if not os.path.exists(path):
        return None
    params = ctx.params
    return Model(InputFile(path), params.get("tag_set"), params.get("signature_def"))


def _nodes(ctx: click.Context, *, in_functions: bool = True) -> Iterator[tuple[str, str]]:
    """The nodes of the model of a command line, and their ops; none if no model can be read."""
    model = _model(ctx)
    if model is None:
        return
    with suppress(OpError, OSError, click.ClickException):
        graph = model.graph_def()
        yield from ((node.name, node.op) for node in graph.node)
        for function in graph.library.function if in_functions else ():
            name = function.signature.name
            yield from ((f"{name}/{node.name}", node.op) for node in function.node_def)
