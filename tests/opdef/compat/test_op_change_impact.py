"""Which nodes a change hits: those that really no longer fit, or mean something else."""

import pytest
from google.protobuf import text_format

from opkernel.opdef import (
    OpDefBuilder,
    OpHistory,
    compare_with_history,
    impact_of_change,
    is_hit_by_change,
    nodes_of_graph_def,
)
from opkernel.proto import GraphDef


def op(inputs=(), outputs=(), attrs=(), deprecated=None):
    builder = OpDefBuilder("Op")
    for spec in inputs:
        builder.input(spec)
    for spec in outputs:
        builder.output(spec)
    for spec in attrs:
        builder.attr(spec)
    if deprecated is not None:
        builder.deprecated(deprecated, "")
    return builder.finalize().op_def


def change(*definitions):
    *earlier, now = definitions
    now = [] if now is None else [now]
    (found, *_) = compare_with_history(OpHistory.of(earlier), now).changes
    return found


def attr(name, value):
    return f"attr {{ key: '{name}' value {{ {value} }} }}"


def hits(change, *attrs, function="", producer=0):
    """The nodes `n0`, `n1` ... with these attrs that are hit; `function` is a FunctionDef."""
    nodes = " ".join(f"node {{ name: 'n{i}' op: 'Op' {text} }}" for i, text in enumerate(attrs))
    library = f"library {{ function {{ {function} }} }}" if function else ""
    text = f"{nodes} node {{ name: 'other' op: 'Other' }} {library}"
    graph_def = text_format.Parse(text, GraphDef())
    graph_def.versions.producer = producer
    found = nodes_of_graph_def(graph_def)
    return [str(node) for node in found if is_hit_by_change(node, change)]


@pytest.mark.parametrize(
    ("old", "new", "impact"),
    [
        (op(), None, "Graphs with Op nodes no longer load."),
        (
            op(attrs=["a: int"]),
            op(),
            "Graphs with Op nodes no longer load: each of them holds attr 'a'.",
        ),
        (
            op(attrs=["a: int = 1"]),
            op(),
            (
                "Graphs whose Op nodes hold attr 'a' no longer load; those saved with default attrs "
                "stripped may lack it."
            ),
        ),
        (
            op(attrs=["a: {'x', 'y', 'z'}"]),
            op(attrs=["a: {'y'}"]),
            'Graphs whose Op nodes set attr \'a\' to "x" or "z" no longer load.',
        ),
        (
            op(attrs=["a: type"]),
            op(attrs=["a: {float, half}"]),
            (
                "Graphs whose Op nodes set attr 'a' to anything but [DT_FLOAT, DT_HALF] no longer "
                "load."
            ),
        ),
        (
            op(attrs=["a: int"]),
            op(attrs=["a: int >= 3"]),
            "Graphs whose Op nodes set attr 'a' to less than 3 no longer load.",
        ),
        (
            op(attrs=["a: list(int) >= 1"]),
            op(attrs=["a: list(int) >= 2"]),
            "Graphs whose Op nodes set attr 'a' to fewer than 2 values no longer load.",
        ),
        (
            op(outputs=["y: float"]),
            op(outputs=["z: float"]),
            (
                "Functions whose bodies name outputs of Op nodes (`node:y:0`) no longer load; "
                "nodes outside functions number their outputs and are not hit."
            ),
        ),
        (
            op(attrs=["a: int = 1"]),
            op(attrs=["a: int = 2"]),
            (
                "Op nodes that leave attr 'a' out, as those saved with default attrs stripped do, and "
                "callers that leave it out now mean 2 where they meant 1."
            ),
        ),
    ],
)
def test_sentences(old, new, impact):
    assert impact_of_change(change(old, new)) == impact


@pytest.mark.parametrize(
    ("now", "impact"),
    [
        ("a: int", "Graphs with Op nodes from before attr 'a' was added no longer load."),
        (
            "a: int = 2",
            (
                "Op nodes from before attr 'a' was added now get 2 for it, where the last version "
                "gave them 1."
            ),
        ),
    ],
)
def test_nodes_from_before_an_attr_was_added_lose_its_default(now, impact):
    history = OpHistory.of([op(), op(attrs=["a: int = 1"])])
    changes = compare_with_history(history, [op(attrs=[now])]).changes
    assert impact in [impact_of_change(change) for change in changes]


def test_every_rule_has_its_sentence():
    pairs = [
        (op(attrs=["a: int"]), op(attrs=["a: bool"])),
        (op(), op(attrs=["a: int"])),
        (op(["x: int32"]), op(["x: float"])),
        (op(["x: int32"]), op(["x: Ref(int32)"])),
        (op([], ["x: int32"]), op([], ["x: float"])),
        (op([], ["x: Ref(int32)"]), op([], ["x: int32"])),
        (op(attrs=["a: int = 1"]), op(attrs=["a: int"])),
        (op(), op(deprecated=9)),
        (op(["x: int32"]), op(["y: int32"])),
    ]
    sentences = {impact_of_change(change(*pair)) for pair in pairs}
    assert len(sentences) == len(pairs)


def test_a_removed_op_hits_all_of_its_nodes():
    assert hits(change(op(), None), "", attr("a", "i: 1")) == ["n0", "n1"]


def test_a_removed_attr_hits_who_holds_it():
    assert hits(change(op(attrs=["a: int = 1"]), op()), attr("a", "i: 1"), "") == ["n0"]


def test_a_new_attr_without_default_hits_who_lacks_it():
    assert hits(change(op(), op(attrs=["a: int"])), attr("a", "i: 1"), "") == ["n1"]


def test_stricter_values_hit_who_holds_a_lost_one():
    stricter = change(op(attrs=["a: {float, half}"]), op(attrs=["a: {float}"]))
    assert hits(stricter, attr("a", "type: DT_FLOAT"), attr("a", "type: DT_HALF"), "") == ["n1"]


def test_a_higher_minimum_hits_who_is_below():
    higher = change(op(attrs=["n: int >= 1 = 5"]), op(attrs=["n: int >= 3 = 5"]))
    assert hits(higher, attr("n", "i: 2"), attr("n", "i: 3"), "") == ["n0"]


def test_another_default_hits_who_leaves_it_to_it():
    other = change(op(attrs=["a: int = 1"]), op(attrs=["a: int = 2"]))
    assert hits(other, "", attr("a", "i: 1")) == ["n0"]


def test_renamed_outputs_hit_functions_that_name_them():
    renamed = change(
        op([], ["a: float", "b: float"]), op([], ["a: float", "c: float"])
    )  # `b` is `c` now
    body = """
      signature { name: 'f' output_arg { name: 'r' type: 1 } }
      node_def { name: 'names_b' op: 'Op' }
      node_def { name: 'names_a' op: 'Op' }
      node_def { name: 'returns_b' op: 'Op' }
      node_def { name: 'user' op: 'Add' input: 'names_b:b:0' input: 'names_a:a:0' }
      ret { key: 'r' value: 'returns_b:b:0' }
    """
    assert hits(renamed, "", function=body) == [
        "names_b (in function f)",
        "returns_b (in function f)",
    ]


def test_a_deprecation_hits_graphs_from_its_version_on():
    deprecated = change(op(), op(deprecated=20))
    assert hits(deprecated, "", producer=19) == []
    assert hits(deprecated, "", producer=20) == ["n0"]


def test_a_renamed_input_hits_no_graph():
    assert hits(change(op(["x: float"]), op(["y: float"])), "") == []
