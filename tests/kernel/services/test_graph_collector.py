"""A step's collector takes the graphs that functions become."""

import pytest

from opkernel.kernel import GraphCollector
from opkernel.proto import GraphDef


def graph(*names: str) -> GraphDef:
    made = GraphDef()
    for name in names:
        made.node.add(name=name, op="NoOp")
    return made


def names(graph_def: GraphDef) -> list[str]:
    return [node.name for node in graph_def.node]


def collected(collector: GraphCollector) -> tuple[list[str], list[str], list[list[str]]]:
    return (
        names(collector.raw_graph),
        names(collector.optimized_graph),
        [*map(names, collector.partitioned_graphs)],
    )


def test_bodies_are_in_one_graph_and_parts_in_one_each() -> None:
    collector = GraphCollector()
    for name in ("f", "g"):
        collector.collect_raw_graph(graph(name, f"{name}/dead"))
        collector.collect_optimized_graph(graph(name))
        collector.collect_partitioned_graph(graph(f"{name}/part"))
    assert collected(collector) == (
        ["f", "f/dead", "g", "g/dead"],
        ["f", "g"],
        [["f/part"], ["g/part"]],
    )


@pytest.mark.parametrize("what", ["raw", "optimized", "partitioned"])
def test_whoever_looks_sees_whether_anything_was_collected(what: str) -> None:
    collector = GraphCollector()
    seen = [collector.dirty]
    getattr(collector, f"collect_{what}_graph")(graph("f"))
    seen.append(collector.dirty)
    collector.clear_graphs()
    seen.append(collector.dirty)
    assert seen == [False, True, False]
    assert collected(collector) == ([], [], [])
