"""`opkernel show`: the format, inputs, outputs and needs of a model file."""

from pathlib import Path
from typing import Any

import click

from opkernel.cli.completion import complete_nodes, complete_ops_of_model
from opkernel.cli.exit_status import WrongUse
from opkernel.cli.graph_facts import facts_of_nodes, graph_facts
from opkernel.cli.graph_report import print_graph, show_ops
from opkernel.cli.html import html_options, write_page
from opkernel.cli.input_file import InputFile
from opkernel.cli.model import Model, load_model
from opkernel.cli.model_options import ModelCommand, model_options
from opkernel.cli.node_report import matching_nodes, node_facts, print_matching, print_node
from opkernel.cli.nodes import NodeFilter
from opkernel.cli.output import (
    echo,
    json_option,
    print_json,
)
from opkernel.cli.progress import progress
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError


@click.command(cls=ModelCommand)
@model_options(has_signature=True)
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=complete_nodes)
@click.option(
    "--op",
    metavar="OP",
    help="List the nodes of an op; may have shell wildcards.",
    shell_complete=complete_ops_of_model,
)
@click.option(
    "--name", metavar="PATTERN", help="List the nodes with this in their names, or like 'a*/b'."
)
@click.option("--scope", metavar="SCOPE", help="List the nodes of a scope or a function.")
@click.option("--all", "is_all", is_flag=True, help="Show all that there is of a SavedModel.")
@click.option("--list_ops", is_flag=True, help="List the ops alone.")
@html_options
@json_option
def show(
    model: Model,
    nodes: tuple[str, ...],
    op: str | None,
    name: str | None,
    scope: str | None,
    is_all: bool,
    list_ops: bool,
    html: Path | None,
    profile: InputFile | None,
    as_json: bool,
) -> None:
    """Show the inputs, outputs and ops of MODEL.

    Names the kind of the file, the producer, inputs and outputs with types and shapes, the ops
    and which of them cannot run yet, and the size of the weights.

    Of a SavedModel it shows the MetaGraph with --tag_set, or the only one: signatures, functions,
    variables, assets, ops, and which files, network or Python the model would ask for.
    --signature_def shows one signature, --all every MetaGraph with all that is in it.

    Each NODE is shown whole: attrs, inputs, who takes its outputs, shapes, kernel, and where it was
    defined, if the file tells. A node of a function is named with the function: FUNCTION/NODE.
    """
    wanted = NodeFilter(op, name, scope)
    if nodes or not wanted.is_empty:
        _show_nodes(model, nodes, wanted, as_json)
        return
    if html is not None or profile is not None:
        write_page(model, html, profile)
        return
    if model.is_saved_model:
        from opkernel.cli.show_saved_model import show_saved_model  # graphs need none of it

        show_saved_model(model, is_all=is_all, list_ops=list_ops, as_json=as_json)
        return
    found, refusal = _load(model)
    facts = {
        "file": str(model),
        "kind": str(model.kind),
        "file_bytes": model.file.size,
        **found,
    }
    if list_ops:
        show_ops(facts, as_json)
        return
    if as_json:
        print_json(facts)
    else:
        print_graph(facts)
    if refusal is not None:
        raise refusal


def _load(model: Model) -> tuple[dict[str, Any], OpError | None]:
    """The facts of a file, and the error where its nodes make no graph."""
    try:
        graph = load_model(model)
    except (InvalidArgumentError, NotFoundError, UnimplementedError) as error:
        return {**facts_of_nodes(model.graph_def()), "refused": [error.message]}, error
    with progress(f"Inferring shapes of {model.name}"):
        return graph_facts(graph), None


def _show_nodes(model: Model, names: tuple[str, ...], wanted: NodeFilter, as_json: bool) -> None:
    """Show nodes by name, or list the nodes that a filter takes."""
    if names and not wanted.is_empty:
        raise WrongUse("--op, --name and --scope list nodes: they go without NODE")
    graph = load_model(model)
    info = model.debug_info()
    if names:
        found = [node_facts(graph, name, info) for name in names]
    else:
        found = matching_nodes(graph, wanted)
    if as_json:
        print_json(found)
    elif names:
        for number, facts in enumerate(found):
            echo("\n" if number else "", nl=False)
            print_node(facts)
    else:
        print_matching(found)
