"""Which operations are put into one cluster: the rules of MarkForCompilation, one by one.

The cases are those of TensorFlow's compiler/jit/mark_for_compilation_pass_test.cc.
"""

import json
import lzma
from pathlib import Path

import pytest
from tests.optimization.clusters.marking import clusters, ends, mark

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph
from opkernel.optimization.clusters.marks import COMPILE, INTERNAL_SCOPE, SCOPE
from opkernel.proto import AttrValue, GraphDef
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT


def placeholder(name="x", dtype=FLOAT, shape=(4,)):
    return raw_ops.Placeholder(dtype=dtype, shape=shape, name=name)


def through_text(x, name):
    """What no compiler takes, between two numbers."""
    text = raw_ops.AsString(input=x, name=f"{name}_text")
    return raw_ops.StringToNumber(string_tensor=text, out_type=FLOAT, name=name)


def with_attr(tensor, **attrs):
    for name, value in attrs.items():
        attr = AttrValue(b=value) if isinstance(value, bool) else AttrValue(s=value.encode())
        tensor.op.set_attr(name, attr)
    return tensor


def test_chains_are_cut_by_what_is_not_compiled():
    with Graph().as_default() as graph:
        a = raw_ops.Tanh(x=placeholder(), name="a")
        b = raw_ops.Exp(x=a, name="b")
        c = through_text(b, "c")
        d = raw_ops.Sin(x=c, name="d")
        raw_ops.Cos(x=d, name="e")
    marked = mark(graph)
    assert marked.clusters == {frozenset("ab"), frozenset("de")}
    assert "no XLA rule" in marked.outside["c"]


def test_a_cycle_through_what_is_not_compiled_parts_its_ends():
    with Graph().as_default() as graph:
        a = raw_ops.Tanh(x=placeholder(), name="a")
        b = through_text(a, "b")
        raw_ops.Mul(x=a, y=b, name="c")
    assert mark(graph).clusters == {frozenset("a"), frozenset("c")}


def test_a_diamond_of_compiled_operations_is_one_cluster():
    with Graph().as_default() as graph:
        a = raw_ops.Tanh(x=placeholder(), name="a")
        b = raw_ops.Neg(x=a, name="b")
        raw_ops.Mul(x=a, y=b, name="c")
    assert mark(graph).clusters == {frozenset("abc")}


def test_control_edges_close_cycles_too():
    with Graph().as_default() as graph:
        x = placeholder()
        a = raw_ops.Tanh(x=x, name="a")
        with graph.control_dependencies([a.op]):
            b = through_text(x, "b")
        with graph.control_dependencies([b.op]):
            raw_ops.Mul(x=a, y=x, name="c")
    assert mark(graph).clusters == {frozenset("a"), frozenset("c")}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "complex64", "bool"])
def test_types_that_are_compiled(dtype):
    with Graph().as_default() as graph:
        x = placeholder(dtype=getattr(opkernel, dtype))
        raw_ops.Identity(input=raw_ops.Reshape(tensor=x, shape=[2, 2], name="a"), name="b")
    assert mark(graph).together("a", "b")


def test_strings_are_not_compiled():
    with Graph().as_default() as graph:
        text = raw_ops.Const(value=[b"a"], dtype=DataType.DT_STRING, name="a")
        raw_ops.Identity(input=text, name="b")
        raw_ops.Where(condition=placeholder(dtype=opkernel.bool), name="where")
    marked = mark(graph)
    assert not marked.clusters
    assert marked.outside["a"] == "XLA has no strings"
    assert marked.outside["where"] == "the size of its result depends on values"


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_random_numbers_with_state_stay_outside(op):
    with Graph().as_default() as graph:
        drawn = getattr(raw_ops, op)(shape=[4], dtype=FLOAT, name="drawn")
        raw_ops.Neg(x=drawn, name="a")
    marked = mark(graph)
    assert marked.clusters == {frozenset("a")}
    assert "random" in marked.outside["drawn"]


@pytest.mark.parametrize("op", ["Svd", "SelfAdjointEigV2", "MatrixInverse", "Qr"])
def test_what_xla_computes_slowly_or_otherwise_stays_outside(op):
    with Graph().as_default() as graph:
        getattr(raw_ops, op)(input=placeholder(shape=(2, 2)), name="a")
    assert not mark(graph).clusters


def test_checks_of_values_stay_outside():
    with Graph().as_default() as graph:
        x = raw_ops.Tanh(x=placeholder(), name="a")
        checked = raw_ops.CheckNumerics(tensor=x, message="", name="check")
        raw_ops.Neg(x=checked, name="b")
    assert mark(graph).clusters == {frozenset("a"), frozenset("b")}


def test_operations_on_different_devices_are_in_different_clusters():
    with Graph().as_default() as graph:
        with graph.device("/device:CPU:0"):
            a = raw_ops.Tanh(x=placeholder(), name="a")
        with graph.device("/device:CPU:1"):
            raw_ops.Neg(x=a, name="b")
    assert mark(graph).clusters == {frozenset("a"), frozenset("b")}


def test_small_clusters_stay_as_they_are_but_for_marked_ones():
    with Graph().as_default() as graph:
        a = raw_ops.Tanh(x=placeholder(), name="a")
        b = through_text(raw_ops.Exp(x=a, name="b"), "t")
        with_attr(raw_ops.Neg(x=b, name="c"), **{COMPILE: True})
    marked = mark(graph, min_size=3)
    assert marked.clusters == {frozenset("c")}
    assert marked.outside["a"] == "its cluster has 2 of 3 operations"


def test_constants_and_identities_do_not_count():
    with Graph().as_default() as graph:
        x = raw_ops.Identity(input=placeholder(), name="a")
        raw_ops.AddV2(x=x, y=[1.0] * 4, name="b")
    assert not mark(graph, min_size=2).clusters
    assert mark(graph, min_size=1).has("b")


def test_no_cluster_gets_larger_than_it_may():
    with Graph().as_default() as graph:
        x = placeholder()
        for _ in range(9):
            x = raw_ops.Neg(x=x)
    assert sorted(map(len, mark(graph, max_size=4).clusters)) <= [4, 4, 4]
    assert max(map(len, mark(graph, max_size=4).clusters)) == 4


def test_a_mark_forbids_compiling():
    with Graph().as_default() as graph:
        a = raw_ops.Tanh(x=placeholder(), name="a")
        b = with_attr(raw_ops.Exp(x=a, name="b"), **{COMPILE: False})
        raw_ops.Neg(x=b, name="c")
    marked = mark(graph)
    assert marked.clusters == {frozenset("a"), frozenset("c")}
    assert marked.outside["b"] == "_XlaCompile forbids it"


def scopes(*names):
    """a -> b -> c, with these scopes."""
    with Graph().as_default() as graph:
        x = placeholder()
        for name, scope in zip("abc", names, strict=True):
            attrs = {COMPILE: True, **({SCOPE: scope} if scope else {})}
            x = with_attr(raw_ops.Neg(x=x, name=name), **attrs)
    return graph


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("one", "one", "one"), ["abc"]),
        (("one", "two", "three"), ["a", "b", "c"]),
        (("one", "", "one"), ["abc"]),
        (("one", "one", "two"), ["ab", "c"]),
    ],
)
def test_scopes_part_marked_nodes(names, expected):
    graph = scopes(*names)
    assert mark(graph, is_global=False).clusters == set(map(frozenset, expected))
    assert mark(graph, is_global=True).clusters == {frozenset("abc")}


def test_internal_scopes_part_all_nodes():
    with Graph().as_default() as graph:
        a = with_attr(raw_ops.Neg(x=placeholder(), name="a"), **{INTERNAL_SCOPE: "one"})
        with_attr(raw_ops.Neg(x=a, name="b"), **{INTERNAL_SCOPE: "two"})
    assert mark(graph).clusters == {frozenset("a"), frozenset("b")}


def test_without_a_global_level_marked_nodes_alone_are_compiled():
    with Graph().as_default() as graph:
        a = with_attr(raw_ops.Tanh(x=placeholder(), name="a"), **{COMPILE: True})
        raw_ops.Exp(x=a, name="b")
    marked = mark(graph, is_global=False)
    assert marked.clusters == {frozenset("a")}
    assert marked.outside["b"] == "nobody has marked it"


# Control flow of TensorFlow 1


def test_branches_are_clusters_of_their_own():
    """DontClusterMergingNodes: what joins both branches runs under another condition than either."""
    with Graph().as_default() as graph:
        taken = placeholder("p", DataType.DT_BOOL, ())
        x = raw_ops.Tanh(x=placeholder(), name="before")
        no, yes = raw_ops.Switch(data=x, pred=taken)
        a, b = raw_ops.Neg(x=no, name="a"), raw_ops.Exp(x=yes, name="b")
        raw_ops.Sin(x=raw_ops.Merge(inputs=[a, b]).output, name="after")
        raw_ops.Mul(x=a, y=x, name="also_a")
        raw_ops.Mul(x=a, y=b, name="never")
    expected = [{"a", "also_a"}, {"b"}, {"before"}, {"after"}, {"never"}]
    assert mark(graph).clusters == set(map(frozenset, expected))


def test_nested_conditions_that_are_the_same_are_one():
    with Graph().as_default() as graph:
        taken = placeholder("p", DataType.DT_BOOL, ())
        x = placeholder()
        first = raw_ops.Switch(data=x, pred=taken).output_true
        second = raw_ops.Switch(data=raw_ops.Neg(x=x, name="n"), pred=taken).output_true
        raw_ops.Mul(x=first, y=second, name="both")
        raw_ops.Neg(x=first, name="one")
        raw_ops.AddV2(x=raw_ops.Neg(x=second, name="two"), y=first, name="sum")
    assert mark(graph).together("two", "sum")


def test_the_constants_of_a_loop_do_not_tie_its_body_to_its_condition():
    """DontClusterTheSpecialIdentityDrivingConstsInLoop."""
    with Graph().as_default() as graph:
        enter = raw_ops.Enter(data=raw_ops.Const(value=0, dtype=opkernel.int32), frame_name="loop")
        merge = raw_ops.Merge(inputs=[enter, enter], name="merge")
        with graph.control_dependencies([merge.output.op]):
            five = raw_ops.Const(value=5, dtype=opkernel.int32)
        below = raw_ops.Less(x=merge.output, y=five, name="below")
        switch = raw_ops.Switch(data=merge.output, pred=raw_ops.LoopCond(input=below))
        body = raw_ops.Identity(input=switch.output_true, name="body")
        with graph.control_dependencies([body.op]):
            one = raw_ops.Const(value=1, dtype=opkernel.int32, name="one")
        after = raw_ops.NextIteration(data=raw_ops.AddV2(x=body, y=one, name="sum"))
        merge.output.op.update_input(1, after)
        raw_ops.Exit(data=switch.output_false)
    marked = mark(graph)
    assert not marked.has("body")
    assert marked.together("one", "sum")
    assert marked.outside["body"] == "the constants of its loop wait for it"


# Variables


def variable():
    return raw_ops.VarHandleOp(dtype=FLOAT, shape=[4], shared_name="v", name="v")


def test_reads_before_writes_may_be_in_one_cluster():
    with Graph().as_default() as graph:
        handle = variable()
        value = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT, name="read")
        raw_ops.AssignVariableOp(
            resource=handle, value=raw_ops.Neg(x=value, name="neg"), name="write"
        )
    assert mark(graph).clusters == {frozenset({"read", "neg", "write"})}


def test_a_read_behind_a_write_is_in_another_cluster():
    with Graph().as_default() as graph:
        handle = variable()
        value = raw_ops.Neg(x=placeholder(), name="neg")
        write = raw_ops.AssignVariableOp(resource=handle, value=value, name="write")
        with graph.control_dependencies([write]):
            read = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT, name="read")
        raw_ops.AddV2(x=read, y=value, name="sum")
    marked = mark(graph)
    assert not marked.together("write", "read")
    assert marked.has("write")
    assert marked.has("read")


def test_two_changes_in_turn_are_in_different_clusters():
    """A change reads, too: the second one has to see the first."""
    with Graph().as_default() as graph:
        handle, value = variable(), raw_ops.Neg(x=placeholder(), name="neg")
        first = raw_ops.AssignAddVariableOp(resource=handle, value=value, name="first")
        with graph.control_dependencies([first]):
            raw_ops.AssignAddVariableOp(resource=handle, value=value, name="second")
    assert not mark(graph).together("first", "second")


def test_changes_of_two_variables_may_be_in_one_cluster_whatever_their_order():
    """TensorFlow keeps them apart; what a launch does where both are one, `tests/xla/test_sessions.py` tells."""
    with Graph().as_default() as graph:
        handles = [raw_ops.VarHandleOp(dtype=FLOAT, shape=[4], shared_name=n, name=n) for n in "uv"]
        value = raw_ops.Neg(x=placeholder(), name="neg")
        first = raw_ops.AssignAddVariableOp(resource=handles[0], value=value, name="first")
        with graph.control_dependencies([first]):
            passed_on = raw_ops.Identity(input=handles[1])
            raw_ops.AssignAddVariableOp(resource=passed_on, value=value, name="second")
    assert mark(graph).together("first", "second")


def test_functions_on_resources_stay_outside():
    @opkernel.function
    def change(handle, x):
        raw_ops.AssignVariableOp(resource=handle, value=x)
        return raw_ops.Neg(x=x)

    with Graph().as_default() as graph:
        change(variable(), placeholder())
    marked = mark(graph)
    assert not marked.clusters
    assert any("resources" in why for why in marked.outside.values())


# Functions


def test_functions_are_compiled_if_all_that_they_call_is():
    @opkernel.function
    def numbers(x):
        return raw_ops.Neg(x=raw_ops.Exp(x=x))

    @opkernel.function
    def texts(x):
        return through_text(x, "t")

    with Graph().as_default() as graph:
        a = raw_ops.Tanh(x=numbers(placeholder()), name="a")
        raw_ops.Tanh(x=texts(a), name="b")
    marked = mark(graph)
    (call,) = [op.name for op in graph.get_operations() if "numbers" in str(op.message.attr)]
    assert marked.together(call, "a")
    assert any("AsString" in why for why in marked.outside.values())


def test_loops_and_conditionals_by_functions_are_compiled_whatever_their_number():
    with Graph().as_default() as graph:
        x = placeholder()
        opkernel.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y), (0, x))
    marked = mark(graph, min_size=10)
    (loop,) = [op.name for op in graph.get_operations() if "While" in op.type]
    assert marked.has(loop)


def test_a_call_that_must_be_compiled_and_cannot_be_stays_outside(caplog):
    @opkernel.function(jit_compile=True)
    def texts(x):
        return through_text(x, "t")

    with Graph().as_default() as graph:
        y = texts(placeholder())
    marked = mark(graph, targets=[y.op])
    assert not marked.clusters
    assert "AsString" in marked.outside[y.op.name]
    assert f"does not compile {y.op.name}, which is marked by _XlaMustCompile" in caplog.text


def test_a_call_that_must_be_compiled_is_a_cluster_by_itself():
    @opkernel.function(jit_compile=True)
    def numbers(x):
        return raw_ops.Neg(x=x)

    with Graph().as_default() as graph:
        y = numbers(raw_ops.Tanh(x=placeholder(), name="a"))
        raw_ops.Exp(x=y, name="b")
    marked = mark(graph, min_size=100)
    assert marked.clusters == {frozenset({y.op.name})}


def test_a_fill_that_others_use_stays_outside():
    with Graph().as_default() as graph:
        dims = raw_ops.Shape(input=raw_ops.Tanh(x=placeholder(), name="a"), name="shape")
        filled = raw_ops.Fill(dims=dims, value=1.0, name="fill")
        through_text(filled, "t")
    assert not mark(graph).has("fill")


# TensorFlow's own answers

RECORDED = Path(__file__).with_name("tensorflow_clusters.json.xz")


def recorded():
    return json.loads(lzma.decompress(RECORDED.read_bytes()))


@pytest.mark.parametrize("number", range(len(recorded())))
def test_the_clusters_are_those_of_tensorflow(number):
    """Loops, gradients, conditionals, variables, strings, drawn at random, as TensorFlow 2.21 marked them.

    Where several ways to join operations end with clusters that cannot grow, TensorFlow's may be another: such graphs,
    one of seventy, are left out.
    """
    graph_def = GraphDef.FromString(bytes.fromhex(recorded()[number]))
    expected = clusters(graph_def.node)
    for node in graph_def.node:
        node.attr.pop("_XlaCluster", None)
    with Graph().as_default() as graph:
        opkernel.import_graph_def(graph_def, name="")
    assert mark(graph, targets=ends(graph)).clusters == expected
