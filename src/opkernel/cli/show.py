"""`opkernel show`: the format, inputs, outputs and needs of a model file."""

from pathlib import Path
from typing import Any

import click

from opkernel.cli.completion import complete_nodes, complete_ops_of_model
from opkernel.cli.files import InputFile, InputFileType, writing
from opkernel.cli.limits import progress
from opkernel.cli.model import Model, load_model
from opkernel.cli.nodes import NodeFilter
from opkernel.cli.options import ModelCommand, model_options, output_option
from opkernel.cli.output import WrongUse, echo, echo_written, json_option, print_facts, print_json
from opkernel.cli.show_graph import facts_of_nodes, graph_facts, print_graph, show_ops
from opkernel.cli.show_nodes import matching_nodes, node_facts, print_matching, print_node
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
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Show all that there is of a SavedModel; with --html, draw what saves and restores it, too.",
)
@click.option("--list_ops", is_flag=True, help="List the ops alone.")
@click.option(
    "--scan",
    "is_scan",
    is_flag=True,
    help="List what MODEL could touch: files, network, Python, custom ops. The status is 3, 4 or 5 for "
    "medium, high and critical findings.",
)
@output_option(
    "--html",
    path_type=Path,
    help="Write a page here that draws the graph, or the signatures of a SavedModel, in a browser.",
)
@click.option(
    "--profile",
    type=InputFileType(dir_okay=False),
    metavar="FILE",
    help="With --html: times for the drawing, from `opkernel run --profile --json > FILE`, or a "
    "trace of `opkernel run --trace FILE.json`.",
)
@json_option
def show(
    model: Model,
    nodes: tuple[str, ...],
    op: str | None,
    name: str | None,
    scope: str | None,
    is_all: bool,
    list_ops: bool,
    is_scan: bool,
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
    if is_scan:
        from opkernel.cli.scan import EXIT_STATUSES, print_scan, scan  # few ask for it

        facts = scan(model)
        print_facts(facts, as_json, print_scan)
        raise click.exceptions.Exit(EXIT_STATUSES[facts["severity"]])
    wanted = NodeFilter(op, name, scope)
    if nodes or not wanted.is_empty:
        _show_nodes(model, nodes, wanted, as_json)
        return
    if html is not None or profile is not None:
        _write_page(model, html, profile, is_all=is_all)
        return
    if model.is_saved_model:
        from opkernel.cli.show_saved_model import show_saved_model  # graphs need none of it

        show_saved_model(model, is_all=is_all, list_ops=list_ops, as_json=as_json)
        return
    found, refusal = _load(model)
    facts = {"file": str(model), "kind": str(model.kind), "file_bytes": model.file.size, **found}
    if list_ops:
        show_ops(facts, as_json)
        return
    print_facts(facts, as_json, print_graph)
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


def _write_page(
    model: Model, html: Path | None, profile: InputFile | None, *, is_all: bool
) -> None:
    """Write the page of a model.

    Raises:
        WrongUse: there is a profile, but no page for it.
        OpError: as `load_graph`.
        InvalidArgumentError: the profile is none.
        UnavailableError: the page cannot be written.
    """
    if html is None:
        raise WrongUse("--profile is for the drawing: add --html FILE")
    from opkernel.cli.measured_times import MeasuredTimes, read_times
    from opkernel.cli.model_page import drawn_programs  # few ask for it
    from opkernel.drawing import html_page

    times = MeasuredTimes() if profile is None else read_times(profile)
    with progress(f"Drawing {model.name}"):
        programs = drawn_programs(model, times.seconds, is_all=is_all)
        text = html_page(programs, model.name, clusters=times.clusters)
    with writing(html):
        html.write_text(text, "utf-8")
    echo_written(html, len(text.encode()))
