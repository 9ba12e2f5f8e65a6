"""String attrs by every way there is to set and to read them: bytes of a node, str of an op's own code."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.graph import node_def
from opkernel.opdef import InferenceContext, NodeDefBuilder, get_node_attr, register_op
from opkernel.runtime import Session

VALUES = {"ascii": b"SAME", "empty": b"", "utf-8": "é".encode(), "no utf-8": b"\xff\x00"}
READ_IN_CODE: dict[str, Any] = {}


def shape_fn(c: InferenceContext) -> None:
    for name in ("s", "l", "_free"):
        READ_IN_CODE[f"InferenceContext.find_attr {name}"] = c.find_attr(name)
    for name in ("s", "l"):
        READ_IN_CODE[f"InferenceContext.get_attr {name}"] = c.get_attr(name)


OP = register_op("StringAttrsTest", outputs=["y: float"], attrs=["s: string", "l: list(string)"],
                 shape_fn=shape_fn)  # fmt: skip


@opkernel.register_kernel(OP, device="CPU")
def by_keywords(*, s, l, construction):  # noqa: E741  # the attr's name
    READ_IN_CODE.update({"keyword s": s, "keyword l": l})
    for name, kind in (("s", "string"), ("l", "list(string)"), ("_free", "string")):
        READ_IN_CODE[f"OpKernelConstruction.get_attr {name}"] = construction.get_attr(name)
        READ_IN_CODE[f"OpKernelConstruction.get_attr typed {name}"] = construction.get_attr(
            name, kind
        )
        READ_IN_CODE[f"get_node_attr {name}"] = get_node_attr(construction.node_def, name, kind)
    return np.float32(0)


def created(value: str | bytes) -> Any:
    graph = opkernel.Graph()
    return graph.create_op(OP.name, attrs={"s": value, "l": [value], "_free": value}, name="n")


def imported(node: Any) -> Any:
    graph = opkernel.Graph()
    message = opkernel.graph.graph_def([node])
    opkernel.import_graph_def(message, graph=graph, name="")
    return graph.get_operation_by_name("n")


def applied(value: str | bytes) -> Any:
    with opkernel.Graph().as_default():
        op = opkernel.raw_ops.StringAttrsTest(s=value, l=[value], name="n").op
    op.set_attr("_free", node_def("n", "", _=value).attr["_"])
    return op


def built(value: str | bytes) -> Any:
    builder = NodeDefBuilder("n", OP.name).attr("s", value).attr("l", [value]).attr("_free", value)
    return imported(builder.finalize())


SETTERS = {
    "create_op": created,
    "raw_ops": applied,
    "NodeDefBuilder": built,
    "node_def": lambda value: imported(node_def("n", OP.name, s=value, l=[value], _free=value)),
}


@pytest.mark.parametrize("setter", SETTERS)
@pytest.mark.parametrize("given_as", [str, bytes])
@pytest.mark.parametrize("name", VALUES)
def test_each_way_to_read_gives_what_each_way_to_set_was_given(name, given_as, setter):
    raw = VALUES[name]
    text = raw.decode("utf-8", "surrogateescape")
    op = SETTERS[setter](text if given_as is str else raw)
    messages = op.node_def.attr
    assert (messages["s"].s, list(messages["l"].list.s), messages["_free"].s) == (raw, [raw], raw)
    assert [op.get_attr(attr) for attr in ("s", "l", "_free")] == [raw, [raw], raw]
    graph = opkernel.Graph()
    opkernel.import_graph_def(op.graph.as_graph_def(), graph=graph, name="")
    READ_IN_CODE.clear()
    assert graph.get_operation_by_name("n").outputs[0].shape.rank is None
    with Session(graph) as session:
        session.run("n:0")
    assert len(READ_IN_CODE) == 16
    assert {way: [text] if way.endswith(" l") else text for way in READ_IN_CODE} == READ_IN_CODE
