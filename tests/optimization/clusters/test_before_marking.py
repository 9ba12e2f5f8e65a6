"""The passes before MarkForCompilation: constants of one consumer each, and scopes for the stages of a pipeline.

The cases are those of TensorFlow's clone_constants_for_better_clustering_test.cc and cluster_scoping_pass_test.cc.
"""

import pytest
from tests.optimization.clusters.marking import mark, passed

from opkernel import raw_ops
from opkernel.graph import Graph
from opkernel.optimization.clusters.marks import INTERNAL_SCOPE
from opkernel.proto import AttrValue
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
CLONE, SCOPE = "clone_constants_for_better_clustering", "cluster_scoping"


def placeholder(name="x", shape=(2,)):
    return raw_ops.Placeholder(dtype=FLOAT, shape=shape, name=name)


def two_products(size, **attrs):
    """Two operations that share nothing but a constant of some elements."""
    with Graph().as_default() as graph:
        c = raw_ops.Const(value=[2.0] * size, dtype=FLOAT, name="c")
        raw_ops.Mul(x=placeholder("x", [size]), y=c, name="a")
        raw_ops.Mul(x=placeholder("y", [size]), y=c, name="b")
    return graph


@pytest.mark.parametrize(("size", "is_cloned"), [(1, True), (15, True), (16, False)])
def test_each_consumer_of_a_small_constant_has_one_of_its_own(size, is_cloned):
    ops = passed(two_products(size), CLONE)
    constants = {ops[name].inputs[1].op.name for name in "ab"}
    assert len(constants) == 1 + is_cloned
    assert "c" in constants


def test_the_clone_of_a_constant_has_its_value_and_waits_for_the_same():
    with Graph().as_default() as graph:
        x = placeholder()
        with graph.control_dependencies([raw_ops.Neg(x=x, name="n").op]):
            c = raw_ops.Const(value=[1.0, 2.0], dtype=FLOAT, name="c")
        raw_ops.Mul(x=c, y=c, name="a")
    one, other = passed(graph, CLONE)["a"].inputs
    assert one.op is not other.op
    assert one.op.attr["value"] == other.op.attr["value"]
    assert [op.name for op in one.op.control_inputs] == ["n"]
    assert [op.name for op in other.op.control_inputs] == ["n"]


def test_constants_stay_as_they_are_beside_updates_in_place():
    """All consumers of the constant see what such an operation writes into it."""
    graph = two_products(2)
    with graph.as_default():
        raw_ops.InplaceAdd(x=graph.get_tensor_by_name("c:0"), i=[0], v=[1.0])
    ops = passed(graph, CLONE)
    assert ops["a"].inputs[1] is ops["b"].inputs[1]


def test_a_constant_ties_no_operations_together():
    graph = two_products(1)
    assert mark(graph).together("a", "b")
    marks = {
        op.attr["_XlaCluster"].s
        for op in passed(graph, CLONE, "mark_for_compilation").values()
        if op.name in "ab"
    }
    assert len(marks) == 2


def pipeline(**scopes):
    """x -> a -> b -> Stage; Unstage -> c -> d, where a and c share a constant."""
    with Graph().as_default() as graph:
        k = raw_ops.Const(value=2.0, dtype=FLOAT, name="k")
        b = raw_ops.Relu(features=raw_ops.AddV2(x=placeholder(), y=k, name="a"), name="b")
        raw_ops.Stage(values=[b], name="stage")
        (taken,) = raw_ops.Unstage(dtypes=[FLOAT], name="unstage")
        raw_ops.Relu(features=raw_ops.AddV2(x=taken, y=k, name="c"), name="d")
        for name, scope in scopes.items():
            value = AttrValue(s=scope.encode())
            graph.get_operation_by_name(name).set_attr(INTERNAL_SCOPE, value)
    return graph


def scopes_of(graph):
    ops = passed(graph, SCOPE)
    return [ops[name].attr[INTERNAL_SCOPE].s for name in "abcd"]


def test_stages_of_a_pipeline_are_in_scopes_of_their_own():
    a, b, c, d = scopes_of(pipeline())
    assert a == b
    assert c == d
    assert a != c


def test_scopes_that_operations_had_count_further():
    a, b, c, d = scopes_of(pipeline(a="one", b="two", c="one", d="three"))
    assert len({a, b, c, d}) == 4


def test_stages_that_share_an_input_are_compiled_apart():
    ops = passed(pipeline(), SCOPE, "mark_for_compilation").values()
    marks = {op.name: op.attr["_XlaCluster"].s for op in ops if op.name in "abcd"}
    assert marks["a"] == marks["b"]
    assert marks["c"] == marks["d"]
    assert marks["a"] != marks["c"]
