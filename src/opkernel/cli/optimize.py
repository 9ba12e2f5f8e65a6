"""`opkernel optimize`: write a model that computes the same with less work."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.frozen import frozen_model
from opkernel.cli.graph_output import output_graph_option
from opkernel.cli.model import Model, load_model
from opkernel.cli.model_options import (
    ModelCommand,
    feed_option,
    fetch_option,
    model_options,
)
from opkernel.cli.output import (
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.progress import progress
from opkernel.cli.signature import GraphInterface
from opkernel.errors import NotFoundError
from opkernel.graph import Graph, Operation, Tensor, save_graph
from opkernel.graph.core.structural_ops import RETVAL_OPS, STRUCTURAL_OPS
from opkernel.graph.freezing.tables import TABLE_INITIALIZERS
from opkernel.optimization import (
    OptimizationPass,
    OptimizedGraph,
    optimization_passes,
    optimize_functions,
)
from opkernel.optimization import optimize_graph as _optimize_graph
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
    if not output.parent.is_dir():
        raise WrongUse(f"--output {output}: there is no directory {output.parent}")
    interface, wanted = _interface(model, fetches)
    graph = interface.graph
    with progress(f"Optimizing {model.name}"):
        optimized = _optimized(interface, wanted, feeds, chosen)
        save_graph(optimized.as_graph_def(), output)
    report = _Report(graph, optimized, output, chosen)
    if as_json:
        print_json(report.as_json())
    else:
        report.print(verbose)


def _chosen(passes: str | None, further: str | None, without: str | None) -> list[OptimizationPass]:
    """The passes to be run, in order."""
    registry = optimization_passes()
    wanted, more, unwanted = (_names(text) for text in (passes, further, without))
    for option, names in (("--passes", wanted), ("--with", more), ("--without", unwanted)):
        try:
            registry.check_names(names)
        except NotFoundError as error:
            raise WrongUse(f"{option}: {error.message}") from error
    if passes is None:
        wanted = [one.name for one in registry if not one.on_request]
    return [one for one in registry if one.name in {*wanted, *more} - {*unwanted}]


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


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
    graph = interface.graph
    elements = [*interface.fetches(fetches).values()]
    names = {one.name for one in passes}
    optimized = _optimize_graph(
        graph,
        [element for element in elements if isinstance(element, Tensor)],
        [interface.input(name) for name in feeds],
        [*[one for one in elements if isinstance(one, Operation)], *_kept(graph, fetches)],
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


@dataclass(frozen=True)
class _Report:
    """The printed account of an optimised graph."""

    graph: Graph
    optimized: OptimizedGraph
    output: Path
    passes: Sequence[OptimizationPass]

    @property
    def _before(self) -> Counter[str]:
        return _ops(self.graph.get_operations(), self.graph.function_library)

    @property
    def _after(self) -> Counter[str]:
        operations, library = self.optimized.operations, self.optimized.graph.function_library
        return _ops(operations, library.reachable_definitions([op.node_def for op in operations]))

    @property
    def _changes_of_pass(self) -> Counter[str]:
        return Counter(change.pass_name for change in self.optimized.changes)

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "output": str(self.output),
            "nodes": {"before": self._before.total(), "after": self._after.total()},
            "ops": {"before": dict(self._before), "after": dict(self._after)},
            "passes": {one.name: self._changes_of_pass[one.name] for one in self.passes},
            "changes": [change._asdict() for change in self.optimized.changes],
        }

    def print(self, verbose: bool) -> None:
        """Print it for people."""
        before, after = self._before, self._after
        changes = self._changes_of_pass
        print_table(
            f"{counted(before.total(), 'node')}, now {after.total():,}",
            ("pass", "changes", "what it does"),
            [(one.name, changes[one.name], one.doc) for one in self.passes],
            ("changes",),
        )
        rows = [(op, before[op], after[op]) for op in sorted(before | after)]
        changed = [row for row in rows if row[1] != row[2]]
        if changed:
            print_table("nodes by op", ("op", "before", "after"), changed, ("before", "after"))
        for change in self.optimized.changes if verbose else ():
            print_text(one_line(f"{change.pass_name}: {change.node} {change.what}"))
        echo(f"written to {one_line(self.output)}")


def _ops(operations: Sequence[Operation], library: Mapping[str, FunctionDef]) -> Counter[str]:
    """How many nodes of each op there are, in the graph and in functions."""
    nodes = [node.op for function in library.values() for node in function.node_def]
    return Counter([*nodes, *[op.type for op in operations]])
