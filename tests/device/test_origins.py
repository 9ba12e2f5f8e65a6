"""Marks say which files a node may open; they never stand in a graph as files hold it."""

import os
from pathlib import Path

import pytest

from opkernel import Permissions
from opkernel.device.permissions import (
    NO_PERMISSIONS,
    ORIGIN_ATTR,
    OWN_CODE,
    PROGRAM,
    adopt_marks,
    mark_nodes,
    mark_of,
    marks_in,
    permissions_of,
    set_origin,
    with_plain_marks,
    without_origins,
)
from opkernel.proto import GraphDef, NodeDef

GIVEN = Permissions(read=["/given"])


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


def read_file(mark: bytes | None) -> NodeDef:
    node = NodeDef(name="n", op="ReadFile")
    if mark is not None:
        node.attr[ORIGIN_ATTR].s = mark
    return node


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (None, "of others"),
        (PROGRAM, "of program"),
        (mark_of(GIVEN), "of the mark"),
        (b"another process's", "none"),
        (b"", "none"),
    ],
    ids=["no mark", "the program's", "one given", "another process's", "an empty one"],
)
def test_a_node_may_do_what_its_mark_says(mark: bytes | None, expected: str) -> None:
    of_program, of_others = Permissions(read=["/program"]), Permissions(read=["/others"])
    found = permissions_of(read_file(mark), of_program, of_others)
    told = {"of others": of_others, "of program": of_program, "of the mark": GIVEN}
    assert found == told.get(expected, NO_PERMISSIONS)


def test_equal_permissions_have_one_mark_and_others_another() -> None:
    mark = mark_of(Permissions(read=["/given"]))
    assert mark == mark_of(GIVEN)
    assert mark not in (mark_of(Permissions(write=["/given"])), mark_of(NO_PERMISSIONS), PROGRAM)


def marks(graph_def: GraphDef) -> list[bytes | None]:
    """The marks of all nodes: of the graph, then of its function."""
    nodes = [*graph_def.node, *graph_def.library.function[0].node_def]
    return [node.attr[ORIGIN_ATTR].s if ORIGIN_ATTR in node.attr else None for node in nodes]


def of_two_ops() -> GraphDef:
    """A graph and a function, each of a node that may open files and one that may not; some are marked."""
    made = graph(marked=True, marked_in_function=True, with_unmarked=True)
    for nodes in (made.node, made.library.function[0].node_def):
        nodes[1].op = "Neg"
        nodes[1].attr[ORIGIN_ATTR].s = b"mark"
    return made


def test_nodes_whose_ops_may_open_files_get_the_mark() -> None:
    graph_def = of_two_ops()
    set_origin(graph_def, PROGRAM, "ReadFile".__eq__)
    assert marks(graph_def) == [PROGRAM, None, PROGRAM, None]
    set_origin(graph_def, b"", "ReadFile".__eq__)
    assert marks(graph_def) == [None] * 4


def test_an_op_is_asked_about_once() -> None:
    asked: list[str] = []

    def may_open_files(op: str) -> bool:
        asked.append(op)
        return op == "ReadFile"

    nodes = [NodeDef(name=str(i), op=op) for i, op in enumerate(["ReadFile", "Neg"] * 3)]
    mark_nodes(nodes, PROGRAM, may_open_files)
    assert asked == ["ReadFile", "Neg"]
    assert [ORIGIN_ATTR in node.attr for node in nodes] == [True, False] * 3


def test_another_process_learns_what_the_marks_of_a_graph_mean() -> None:
    graph_def = graph(marked=True, marked_in_function=True, with_unmarked=True)
    graph_def.node[0].attr[ORIGIN_ATTR].s = mark_of(GIVEN)
    graph_def.node[1].attr[ORIGIN_ATTR].s = PROGRAM
    assert marks_in(graph_def) == {
        mark_of(GIVEN): GIVEN,
        PROGRAM: None,
    }  # "mark" means nothing here


def test_marks_of_another_process_mean_here_what_they_mean_there() -> None:
    theirs, program_there = os.urandom(16).hex().encode(), os.urandom(16).hex().encode()
    adopt_marks({theirs: GIVEN, program_there: None})
    assert permissions_of(read_file(theirs), OWN_CODE, OWN_CODE) == GIVEN
    assert permissions_of(read_file(program_there), OWN_CODE, NO_PERMISSIONS) is OWN_CODE


def test_nobody_gives_a_known_mark_another_meaning() -> None:
    adopt_marks({mark_of(GIVEN): None, PROGRAM: Permissions(read=["/"])})
    assert permissions_of(read_file(mark_of(GIVEN)), OWN_CODE, OWN_CODE) == GIVEN
    assert permissions_of(read_file(PROGRAM), NO_PERMISSIONS, OWN_CODE) is NO_PERMISSIONS


def test_plain_marks_are_the_same_in_every_process(tmp_path: Path) -> None:
    permissions = Permissions(read=[tmp_path])
    node = read_file(mark_of(permissions))
    content = with_plain_marks(node.SerializeToString())
    assert mark_of(permissions) not in content
    assert repr(permissions).encode() in content
    assert PROGRAM not in with_plain_marks(read_file(PROGRAM).SerializeToString())


def test_a_message_without_marks_stays_as_it_is() -> None:
    content = b"text that happens to have " + PROGRAM
    assert with_plain_marks(content) is content
