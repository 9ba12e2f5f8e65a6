"""Graphs in stages: what runs side by side, given what the nodes take."""

import opkernel
from opkernel.graph import Graph, Operation
from opkernel.graph.edit.subgraph import Needs, prune_and_order
from opkernel.runtime.adaptive.stages import Stage, find_stages, without_branches

MS = 1e-3


class Nodes:
    """A graph of nodes that add what they are given, each with the time that it is said to take."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.seconds: dict[str, float] = {}
        with self.graph.as_default():
            self.x = opkernel.placeholder(opkernel.float32, [], name="x").op

    def add(
        self, name: str, ms: float, *inputs: Operation, after: Operation | None = None
    ) -> Operation:
        """A node."""
        tensors = [op.outputs[0] for op in inputs or (self.x,)]
        op = self.graph.create_op("AddN", [tensors], name=name)
        if after is not None:
            op.add_control_input(after)
        self.seconds[name] = ms * MS
        return op

    def stages(
        self, *fetches: Operation, stateful: str = "", threads: int = 2
    ) -> list[list[set[str]]]:
        """The names in the branches of the stages."""
        found = self.find(*fetches, stateful=stateful, threads=threads)
        return [[{op.name for op in branch.ops} for branch in stage] for stage in found]

    def find(self, *fetches: Operation, stateful: str = "", threads: int = 2) -> list[Stage]:
        """The stages; of the nodes some have state."""
        feeds = [self.x.outputs[0]]
        order = prune_and_order([op.outputs[0] for op in fetches], [], feeds)
        state = stateful.split()
        return find_stages(
            order, Needs(feeds).sources, self.seconds, lambda op: op.name not in state, threads
        )


def test_two_towers_with_what_is_before_and_behind() -> None:
    n = Nodes()
    trunk = n.add("trunk", 5)
    light = n.add("light", 0, trunk)
    a = n.add("a1", 3, n.add("a0", 1, light))
    b = n.add("b1", 0, n.add("b0", 4, trunk))
    head = n.add("head", 2, n.add("join", 0, a, b))
    assert n.stages(head) == [
        [{"trunk", "light"}],
        [{"a0", "a1"}, {"b0", "b1"}],
        [{"join", "head"}],
    ]


def test_towers_that_nothing_joins() -> None:
    n = Nodes()
    assert n.stages(n.add("a", 1), n.add("b", 1), n.add("c", 0)) == [[{"c"}], [{"a"}, {"b"}]]


def test_one_fork_after_the_other_without_a_heavy_node_between() -> None:
    n = Nodes()
    join = n.x
    for block in "pq":
        branches = [n.add(f"{block}{number}", 1 + number, join) for number in range(3)]
        join = n.add(f"{block}_join", 0, *branches)
    assert n.stages(join) == [
        [{"p0"}, {"p1"}, {"p2"}],
        [{"p_join"}],
        [{"q0"}, {"q1"}, {"q2"}],
        [{"q_join"}],
    ]


def test_query_key_and_value() -> None:
    n = Nodes()
    query, key = n.add("query", 1), n.add("key", 1)
    scores = n.add("scores", 1, query, key)
    value = n.add("value", 1)
    assert n.stages(n.add("out", 1, scores, value)) == [
        [{"query", "key", "scores"}, {"value"}],
        [{"out"}],
    ]


def test_what_is_not_worthwhile() -> None:
    n = Nodes()
    chain = n.add("c1", 3, n.add("c0", 3))
    assert n.stages(chain) == []
    assert n.stages(n.add("short", 0.01), n.add("shorter", 0.01)) == []
    assert n.stages(n.add("long", 9), n.add("little", 0.03)) == []  # what it saves is too little
    assert n.stages(n.add("d", 3), n.add("e", 3), threads=1) == []


def test_nodes_with_state_are_in_no_branch_and_stay_in_order() -> None:
    n = Nodes()
    read = n.add("read", 0)
    a, b = n.add("a", 3, read), n.add("b", 3, read)
    write = n.add("write", 0, a)
    again = n.add("again", 0, after=write)
    join = n.add("join", 0, a, b, again)
    stages = [[{"read"}], [{"a"}, {"b"}], [{"write", "again", "join"}]]
    assert n.stages(join, stateful="read write again") == stages


def test_a_node_with_state_between_two_of_a_branch_keeps_it_from_being_one() -> None:
    n = Nodes()
    a = n.add("a1", 3, n.add("state", 0, n.add("a0", 3)))
    assert n.stages(n.add("join", 0, a, n.add("b", 3)), stateful="state") == []
    heavy = n.add("heavy", 3)
    assert n.stages(n.add("other", 0, n.add("c", 3), heavy), stateful="heavy") == []


def test_the_order_of_nodes_with_state_is_that_of_the_graph() -> None:
    """`late` could run at once, but it comes after `early` where nothing is side by side."""
    n = Nodes()
    a = n.add("a", 3)
    early = n.add("early", 0, a)
    late = n.add("late", 0)
    join = n.add("join", 0, early, late, n.add("b", 3))
    assert n.stages(join, stateful="early late") == []
    assert n.stages(join, stateful="early") != []


def test_a_control_edge_is_an_edge() -> None:
    n = Nodes()
    a = n.add("a", 3)
    assert n.stages(n.add("join", 0, a, n.add("b", 3, after=a))) == []


def test_stages_that_are_not_kept_run_in_order_with_their_neighbours() -> None:
    n = Nodes()
    join = n.x
    for block in "pqr":
        join = n.add(f"{block}_join", 0, n.add(f"{block}0", 1, join), n.add(f"{block}1", 1, join))
    stages = n.find(join)
    kept = [len(stage) > 1 and stage[0].ops[0].name != "q0" for stage in stages]
    names = [
        [[op.name for op in branch.ops] for branch in stage]
        for stage in without_branches(stages, kept)
    ]
    assert names == [
        [["p0"], ["p1"]],
        [["p_join", "q0", "q1", "q_join"]],
        [["r0"], ["r1"]],
        [["r_join"]],
    ]
