"""Random graphs out and in again; random damage; work that grows linearly."""

import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graph.builders import BASE_TEXT, REGISTRY, const, identity, node, parse

from opkernel.errors import OpError
from opkernel.graph import (
    FileKind,
    Graph,
    Tensor,
    import_graph_def,
    instantiate_function,
    kind_of_bytes,
)
from opkernel.proto import DecodeError, FunctionDef, FunctionDefLibrary, GraphDef, OpDef
from opkernel.types import float32

MAKERS: dict[str, Callable[[Graph, list[Tensor]], list[Tensor]]] = {
    "AddV2": lambda g, x: list(g.create_op("AddV2", x[:2]).outputs),
    "AddN": lambda g, x: list(g.create_op("AddN", [x]).outputs),
    "IdentityN": lambda g, x: list(g.create_op("IdentityN", [x]).outputs),
    "Identity": lambda g, x: list(g.create_op("Identity", x[:1], control_inputs=x).outputs),
    "Split": lambda g, x: list(g.create_op("Split", [0, x[0]], attrs={"num_split": 3}).outputs),
    "Placeholder": lambda g, x: list(g.create_op("Placeholder", attrs={"dtype": float32}).outputs),
}


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A random acyclic graph of floats."""
    graph = Graph(REGISTRY)
    tensors = MAKERS["Placeholder"](graph, [])
    for kind in draw(st.lists(st.sampled_from(sorted(MAKERS)), max_size=12)):
        chosen = draw(st.lists(st.sampled_from(tensors), min_size=2, max_size=4))
        with graph.device(draw(st.sampled_from(["", "/cpu:0", "/job:w/gpu:1"]))):
            tensors += MAKERS[kind](graph, chosen)
    return graph


def load(graph_def: GraphDef) -> Graph:
    graph = Graph(REGISTRY)
    import_graph_def(graph_def, graph=graph, name="")
    return graph


@given(graphs())
def test_export_and_import_give_the_same_graph(graph: Graph) -> None:
    exported = graph.as_graph_def()
    again = load(exported)
    assert again.as_graph_def() == exported
    for old, new in zip(graph.get_operations(), again.get_operations(), strict=True):
        assert [t.name for t in old.inputs] == [t.name for t in new.inputs]
        assert [t.consumers() == [] for t in old.outputs] == [
            t.consumers() == [] for t in new.outputs
        ]
        assert [t.shape for t in old.outputs] == [t.shape for t in new.outputs]


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_in_the_file_does_not_matter(
    graph: Graph, shuffle: random.Random
) -> None:
    exported = graph.as_graph_def()
    nodes = list(exported.node)
    shuffle.shuffle(nodes)
    again = load(GraphDef(node=nodes, versions=exported.versions))
    by_name = {n.name: n for n in again.as_graph_def().node}
    assert by_name == {n.name: n for n in exported.node}
    position = {op.name: index for index, op in enumerate(again.get_operations())}
    for op in again.get_operations():
        for source in (*(t.op for t in op.inputs), *op.control_inputs):
            assert position[source.name] < position[op.name]


@given(graphs())
def test_importing_under_a_prefix_renames_everything(graph: Graph) -> None:
    target = Graph(REGISTRY)
    import_graph_def(graph.as_graph_def(), graph=target, name="p")
    for old, new in zip(graph.get_operations(), target.get_operations(), strict=True):
        assert new.name == f"p/{old.name}"
        assert [t.name for t in new.inputs] == [f"p/{t.name}" for t in old.inputs]


FUNCTION = (
    "library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
    "output_arg { name: 'y' type: DT_FLOAT } } "
    + identity("i", "x").replace("node {", "node_def {")
    + "ret { key: 'y' value: 'i:output:0' } } } versions { producer: 1000 }"
)
LOOP = (
    node("e", "Enter", "a", attrs="T type: DT_FLOAT; frame_name s: 'f'")
    + node("m", "Merge", "e", "nx", attrs="T type: DT_FLOAT; N i: 2")
    + node("nx", "NextIteration", "m", attrs="T type: DT_FLOAT")
    + node("f", "F", "m")
)
VICTIM = parse(BASE_TEXT + LOOP + FUNCTION).SerializeToString()


def flip_bits(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def edit(data: bytes, chance: random.Random) -> bytes:
    """Change a field of a node to what another node has, or to something absurd."""
    graph_def = GraphDef.FromString(data)
    victim, other = chance.choice(graph_def.node), chance.choice(graph_def.node)
    change = chance.randrange(6)
    if change == 0:
        victim.name = chance.choice([other.name, "", "_x", "a:b", "^a"])
    elif change == 1:
        victim.op = chance.choice([other.op, "", "Nope", "_Arg", "Merge", "F"])
    elif change == 2:
        end = chance.choice(["", ":1", ":" + "9" * 30, ":-1", ":"])
        victim.input.append(chance.choice(["", "^"]) + other.name + end)
    elif change == 3 and victim.attr:
        victim.attr[chance.choice(sorted(victim.attr))].i = chance.choice([0, -1, 2**40, -(2**63)])
    elif change == 4 and victim.attr:
        victim.attr[chance.choice(sorted(victim.attr))].type = chance.choice([0, 3, 101, 9999, -1])
    elif victim.attr:
        del victim.attr[chance.choice(sorted(victim.attr))]
    return graph_def.SerializeToString()


@pytest.mark.parametrize("allow_unregistered", [False, True])
@pytest.mark.parametrize("damage", [flip_bits, edit])
def test_damaged_graphs_give_an_opkernel_error_or_a_graph(damage, allow_unregistered: bool) -> None:
    chance = random.Random(7)
    for _ in range(400):
        data = damage(VICTIM, chance)
        assert kind_of_bytes(data) in FileKind
        graph = Graph(REGISTRY)
        try:
            graph_def = GraphDef.FromString(data)
            import_graph_def(graph_def, graph=graph, allow_unregistered=allow_unregistered)
            graph.as_graph_def(add_shapes=True)
            for name in graph.function_library:
                instantiate_function(graph.function_library, name)
        except (OpError, DecodeError):
            continue


def calls_in(work: Callable[[], object]) -> int:
    """How many functions something calls."""
    count = 0

    def count_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def calls_to_import(size: int, *, backwards: bool = False) -> int:
    """How many functions are called to import a chain."""
    texts = [const("n0")] + [identity(f"n{k}", f"n{k - 1}") for k in range(1, size)]
    graph_def = parse("".join(reversed(texts) if backwards else texts))
    graph = Graph(REGISTRY)

    def work() -> None:
        import_graph_def(graph_def, graph=graph, name="")
        last = graph.get_tensor_by_name(f"n{size - 1}:0")
        assert last.shape.as_list() == []
        assert graph.get_tensor_by_name("n0:0").consumers()
        graph.as_graph_def()

    return calls_in(work)


@pytest.mark.parametrize("backwards", [False, True])
def test_work_grows_linearly(backwards: bool) -> None:
    calls_to_import(10)  # ops are looked up once
    small, large = (calls_to_import(size, backwards=backwards) for size in (200, 2000))
    assert large < 10.5 * small


def calls_for_functions(count: int, names: int) -> int:
    """How many functions are called to load a library of empty functions."""
    functions = [FunctionDef(signature=OpDef(name=f"f{k % names}")) for k in range(count)]
    graph_def, graph = GraphDef(library=FunctionDefLibrary(function=functions)), Graph(REGISTRY)
    calls = calls_in(lambda: import_graph_def(graph_def, graph=graph, name=""))
    assert len(graph.function_library) == names
    return calls


def test_a_function_that_is_there_again_costs_a_few_calls() -> None:
    """As in 4 MB of two million functions without a name."""
    small, large = calls_for_functions(100, 1), calls_for_functions(1100, 1)
    assert large - small <= 6 * 1000


def test_functions_of_many_names_cost_alike() -> None:
    small, large = calls_for_functions(100, 100), calls_for_functions(1000, 1000)
    assert large < 10.5 * small
