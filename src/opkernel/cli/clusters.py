"""The clusters of a model by engine, with times; why nodes stay outside: `opkernel explain MODEL`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from statistics import median
from time import perf_counter
from typing import Any

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.output import counted, echo, one_line, print_table, print_text
from opkernel.cli.random_feeds import random_feeds
from opkernel.errors import DeadlineExceededError, OpError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.runtime import Session

_STEPS = 7

Opener = Callable[..., tuple[Graph, Callable[[], AbstractContextManager[Session]]]]


def cluster_facts(
    open_with: Opener, names: Sequence[str], names_of_fetches: Sequence[str]
) -> list[dict[str, Any]]:
    """What engines make of a graph, and what steps take with each and without any.

    Args:
        open_with: Gives the graph, and what opens a session with the engine `jit`.
        names: The engines; all that are installed if empty.
        names_of_fetches: The outputs.
    """
    from opkernel.runtime.engines.engine import engine_named, registered_engines

    graph, _ = open_with(jit="off")
    fetches = [graph.as_graph_element(name) for name in names_of_fetches]
    timed = _timed(open_with, "off", names_of_fetches)
    found: list[dict[str, Any]] = [{"engine": "off", **timed}]
    for name in names or registered_engines():
        engine = engine_named(name)
        try:
            engine.check_installed()
        except UnimplementedError as error:
            found.append({"engine": name, "error": error.message})
            continue
        facts = {"engine": name, **_clusters(graph, fetches, engine)}
        if facts["clusters"]:
            facts |= _timed(open_with, name, names_of_fetches)
        found.append(facts)
    return found


def _clusters(graph: Graph, fetches: Sequence[Tensor | Operation], engine: Any) -> dict[str, Any]:
    from opkernel.cli.signature import graph_inputs
    from opkernel.runtime.engines.clusters import clusters_of

    tensors = [one for one in fetches if isinstance(one, Tensor)]
    targets = [one for one in fetches if isinstance(one, Operation)]
    found = clusters_of(graph, tensors, graph_inputs(graph), targets, engine=engine)
    return {
        "clusters": [{"name": one.name, "nodes": list(one.nodes)} for one in found.clusters],
        "outside": found.outside,
        "left": found.left,
    }


def _timed(open_with: Opener, jit: str, names_of_fetches: Sequence[str]) -> dict[str, Any]:
    """The median time of a step on drawn values, and what the session found out; the error where there is one."""
    graph, open_session = open_with(jit=jit)
    asked = [graph.as_graph_element(name) for name in names_of_fetches]
    try:
        feeds = random_feeds(graph, asked, {}, {})
        with open_session() as session:
            for _ in range(2):  # the first compiles
                session.run(asked, feeds)
            took = median(_one(session, asked, feeds) for _ in range(_STEPS))
            return {"milliseconds": took, "report": [*map(str, session.report())]}
    except DeadlineExceededError:
        raise  # no time is left for what follows
    except (OpError, WrongUse) as error:
        return {"not_run": str(error).partition("\n")[0]}


def _one(session: Session, fetches: Sequence[Any], feeds: Mapping[Tensor, Any]) -> float:
    start = perf_counter()
    session.run(fetches, feeds)
    return (perf_counter() - start) * 1e3


def print_clusters(facts: Sequence[dict[str, Any]]) -> None:
    """Print it for people."""
    rows = [
        (
            _name(one),
            str(len(one["clusters"])) if "clusters" in one else "",
            str(sum(len(c["nodes"]) for c in one.get("clusters", ())) or ""),
            str(one.get("left", "")),
            f"{one['milliseconds']:.3f}" if "milliseconds" in one else "",
        )
        for one in facts
    ]
    columns = ("engine", "clusters", "nodes in clusters", "left to the CPU", "ms a step")
    print_table("Engines", columns, rows, columns[1:])
    for one in facts:
        for told in (one.get("error"), one.get("not_run"), *one.get("report", ())):
            if told:
                print_text(one_line(f"{_name(one)}: {told}"))
        if "clusters" in one:
            _print_engine(one)


def _name(one: dict[str, Any]) -> str:
    return "no engine" if one["engine"] == "off" else str(one["engine"])


def _print_engine(one: dict[str, Any]) -> None:
    if one["clusters"]:
        echo()
        rows = [
            (c["name"], str(len(c["nodes"])), c["nodes"][0], c["nodes"][-1])
            for c in one["clusters"]
        ]
        print_table(
            f"Clusters for {one['engine']}", ("cluster", "nodes", "first", "last"), rows, ("nodes",)
        )
    if one["outside"]:
        echo()
        print_text(f"Outside, with {one['engine']}:", bold=True)
        for why, count in Counter(one["outside"].values()).most_common():
            example = next(name for name, reason in one["outside"].items() if reason == why)
            print_text(one_line(f"  {counted(count, 'node')}: {why} ({example})"))
