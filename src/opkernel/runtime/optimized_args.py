"""optimized_args: what an executor is made from, with the graph that optimisation passes make of it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from opkernel.errors import OpError
from opkernel.graph.tensor_facts import TensorFacts
from opkernel.runtime.executors import ExecutorArgs

__all__ = ["Passes", "optimized_args"]

Passes = bool | Collection[str]
"""All optimisation passes, none, or those of these names."""

_LOGGER = logging.getLogger("opkernel.optimization")


def optimized_args(
    args: ExecutorArgs, passes: Passes, *, feed_facts: Sequence[TensorFacts] | None = None
) -> ExecutorArgs:
    """The args with an optimised graph; those that were given where a pass fails.

    Args:
        args: feeds, fetches and targets are of one graph, which stays as it is.
        passes: which passes run.
        feed_facts: what is known of what will be fed; the shapes that the graph knows if None.

    Raises:
        NotFoundError: there is no pass of a name given.
        InvalidArgumentError: the graph has a cycle.
    """
    if passes is False or not args.order:
        return args
    from opkernel.optimization import optimization_passes, optimize_graph

    names = None if passes is True else passes
    optimization_passes().check_names(names or ())
    graph = args.order[0].graph
    try:
        optimized = optimize_graph(
            graph,
            args.fetches,
            args.feeds,
            args.targets,
            operations=args.order,
            passes=names,
            feed_facts=feed_facts,
        )
    except OpError as error:  # compiling the graph as it is will say what is wrong with it
        _LOGGER.info("The graph is not optimized: %s", error)
        return args
    functions = optimized.graph.function_library
    if len(functions) > len(graph.function_library):
        args.library.add_functions(functions)
    return replace(
        args, feeds=optimized.feeds, fetches=optimized.fetches, targets=optimized.targets
    )
