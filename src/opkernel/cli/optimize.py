"""`opkernel optimize`: write a model that computes the same with less work."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from opkernel.cli.files import check_directory
from opkernel.cli.freeze import frozen_model, output_graph_option
from opkernel.cli.limits import progress
from opkernel.cli.model import Model, load_model
from opkernel.cli.options import ModelCommand, feed_option, fetch_option, model_options
from opkernel.cli.output import (
    WrongUse,
    counted,
    echo_written,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.signature import GraphInterface, split_elements
from opkernel.errors import NotFoundError
from opkernel.graph import FunctionLibraryDefinition, Graph, Operation, save_graph
from opkernel.graph.core.structural_ops import INPUT_OPS, RETVAL_OPS, STRUCTURAL_OPS
from opkernel.graph.freezing.freeze_graph import TABLE_INITIALIZERS
from opkernel.optimization import (
    OptimizationPass,
    OptimizedGraph,
    optimization_passes,
    optimize_functions,
    optimize_graph,
)
from opkernel.proto import FunctionDef


@click.command(cls=ModelCommand)
@model_options(has_signature=True, runs=True)
@output_graph_option
@fetch_option(help="A tensor or operation to compute; by default all outputs of the graph.")
@feed_option(help="A tensor to be fed, besides the placeholders; the nodes before it are left out.")
@click.option("--passes", metavar="A,B", help="Run these passes alone.")
@click.option("--with", "further", metavar="A,B", help="Run these too, which run on request only.")
@click.option("--without", metavar="A,B", help="Do not run these passes.")
@click.option("--verbose", "-v", is_flag=True, help="Print the change of each node.")
@json_option
def optimize(
    model: Model,
    output: Path,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    passes: str | None,
    further: str | None,
    without: str | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Write a graph that computes the same as MODEL with less work.

    Feeds, fetches and functions keep their names. Results change by rounding at most.

    A SavedModel is frozen first: its variables become constants.
    """
    chosen = _chosen(passes, further, without)
    check_directory("--output", output)
    interface, wanted = _interface(model, fetches)
    with progress(f"Optimizing {model.name}"):
        optimized = _optimized(interface, wanted, feeds, chosen)
        save_graph(optimized.as_graph_def(), output)
    graph, operations = interface.graph, optimized.operations
    library = optimized.graph.function_library
    called = library.reachable_definitions([op.node_def for op in operations])
    before, after = _ops(graph.get_operations(), graph.function_library), _ops(operations, called)
    changes = Counter(change.pass_name for change in optimized.changes)
    work = [_computing(ops, library) for ops in (before, after)]
    if as_json:
        print_json(
            {
                "output": str(output),
                "nodes": {"before": before.total(), "after": after.total()},
                "operations": {"before": work[0], "after": work[1]},
                "ops": {
                    "before": dict(sorted(before.items())),
                    "after": dict(sorted(after.items())),
                },
                "passes": {one.name: changes[one.name] for one in chosen},
                "changes": [change._asdict() for change in optimized.changes],
            }
        )
        return
    print_text(f"{counted(before.total(), 'node')}, now {after.total():,}.")
    print_text(f"{_compared(*work)} Constants, inputs and nodes that pass on a value do not count.")
    rows = [(one.name, changes[one.name], one.doc) for one in chosen if changes[one.name]]
    title = f"{len(rows)} of {len(chosen)} passes changed something"
    if rows:
        print_table(title, ("pass", "changes", "what it does"), rows, ("changes",))
    else:
        print_text(title)
    changed = [
        (op, before[op], after[op]) for op in sorted(before | after) if before[op] != after[op]
    ]
    if changed:
        print_table("nodes by op", ("op", "before", "after"), changed, ("before", "after"))
    for change in optimized.changes if verbose else ():
        print_text(one_line(f"{change.pass_name}: {change.node} {change.what}"))
    echo_written(output)


def _ops(operations: Sequence[Operation], library: Mapping[str, FunctionDef]) -> Counter[str]:
    """How many nodes of each op there are, in the graph and in functions."""
    nodes = [node.op for function in library.values() for node in function.node_def]
    return Counter([*nodes, *[op.type for op in operations]])


def _computing(ops: Mapping[str, int], library: FunctionLibraryDefinition) -> int:
    """How many nodes compute something: no constants, inputs, or nodes that pass a value on."""
    left = INPUT_OPS | STRUCTURAL_OPS | {"Const", "NoOp"}
    return sum(
        number for op, number in ops.items() if op not in left and not library.traits(op).passes_on
    )


def _compared(before: int, after: int) -> str:
    """How many operations compute in a step, before and after."""
    share = f" ({(before - after) / before:.0%} fewer)" if after < before else ""
    return f"{counted(before, 'operation')} to compute, now {after:,}{share}."


def _chosen(passes: str | None, further: str | None, without: str | None) -> list[OptimizationPass]:
    """The passes to be run, in order."""
    registry = optimization_passes()
    named = []
    for option, text in (("--passes", passes), ("--with", further), ("--without", without)):
        names = [name.strip() for name in (text or "").split(",") if name.strip()]
        try:
            registry.check_names(names)
        except NotFoundError as error:
            raise WrongUse(f"{option}: {error.message}") from error
        named.append(names)
    wanted, more, unwanted = named
    if passes is None:
        wanted = [one.name for one in registry if not one.on_request]
    return [one for one in registry if one.name in {*wanted, *more} - {*unwanted}]


def _interface(model: Model, fetches: Sequence[str]) -> tuple[GraphInterface, Sequence[str]]:
    """A graph without variables, and what to compute of it: a SavedModel is frozen first."""
    if not model.is_saved_model:
        return GraphInterface(load_model(model)), fetches
    frozen = frozen_model(model, fetches)
    initializers = frozen.graph.get_collection(TABLE_INITIALIZERS)
    return frozen.interface, [*frozen.outputs, *[op.name for op in initializers]]


def _optimized(
    interface: GraphInterface,
    fetches: Sequence[str],
    feeds: Sequence[str],
    passes: Sequence[OptimizationPass],
) -> OptimizedGraph:
    tensors, targets = split_elements(interface.fetches(fetches).values())
    names = {one.name for one in passes}
    optimized = optimize_graph(
        interface.graph,
        tensors,
        [interface.input(name) for name in feeds],
        [*targets, *_kept(interface.graph, fetches)],
        passes=names,
    )
    return optimize_functions(optimized, names)


def _kept(graph: Graph, fetches: Sequence[str]) -> list[Operation]:
    """The operations of a function's body to keep beside the fetches: arguments, results, effects."""
    operations = graph.get_operations()
    if not any(op.type in STRUCTURAL_OPS for op in operations):
        return []
    if fetches:
        return [op for op in operations if op.type in RETVAL_OPS and op.name in fetches]
    return [op for op in operations if op.op_def.is_stateful]
