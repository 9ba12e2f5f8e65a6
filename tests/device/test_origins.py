"""The marks of nodes never stand in a graph as files hold it."""

from opkernel.device.origins import ORIGIN_ATTR, without_origins
from opkernel.proto import GraphDef


def graph(*, marked: bool, marked_in_function: bool, with_unmarked: bool) -> GraphDef:
    """A graph with a node in it and in its function, and others that have no mark."""
    result = GraphDef()
    function = result.library.function.add()
    function.signature.name = "f"
    for nodes, has_mark in ((result.node, marked), (function.node_def, marked_in_function)):
        for name in ("a", "b") if with_unmarked else ("a",):
            node = nodes.add(name=name, op="ReadFile")
            node.attr["kept"].i = 1
            if has_mark and name == "a":
                node.attr[ORIGIN_ATTR].s = b"mark"
    return result


def test_marks_are_dropped_wherever_they_stand() -> None:
    choices = (False, True)
    for marked in choices:
        for marked_in_function in choices:
            for with_unmarked in choices:
                given = graph(
                    marked=marked,
                    marked_in_function=marked_in_function,
                    with_unmarked=with_unmarked,
                )
                before = GraphDef.FromString(given.SerializeToString())
                expected = graph(
                    marked=False, marked_in_function=False, with_unmarked=with_unmarked
                )
                assert without_origins(given) == expected
                assert given == before
