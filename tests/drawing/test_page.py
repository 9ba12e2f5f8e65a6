"""Pages and notebooks: what the drawing of a graph says, and that it says nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.hostile_models import ANY_TEXT, imported, model
from tests.drawing.page_reader import read_page
from tests.graph.function_builders import define, graph_of, library_of
from tests.hostile_names import HOSTILE_TEXT

from opkernel import Graph, float32, function, load_graph, raw_ops, while_loop
from opkernel.drawing import html_page, notebook_html

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.pb"
WRITTEN = [text for text in HOSTILE_TEXT if not any("\ud800" <= c <= "\udfff" for c in text)]
EMPTY = {"meta", "input", "rect", "path", "br"}


class Elements(HTMLParser):
    """The elements of a document, with their attributes; all that is opened must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attrs for name, attrs in self.found if name == tag)


@pytest.fixture(scope="module")
def digits() -> Graph:
    return load_graph(DIGITS)


def deep_graph(blocks: int, layers: int) -> Graph:
    """Blocks of layers of nodes, by scopes."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[None, 3], name="x")
        for block in range(blocks):
            for layer in range(layers):
                for _ in range(4):
                    x = raw_ops.AddV2(x=x, y=x, name=f"block{block}/layer{layer}/add")
    return graph


def test_a_page_has_each_node_once_or_within_another(digits: Graph) -> None:
    (program,) = read_page(html_page(digits, "digits"))
    assert sorted(program.names) == sorted(op.name for op in digits)
    folded = {name for node in program.nodes.values() for name in node["folded"]}
    assert "conv1/kernel" in folded
    assert program.boxes.isdisjoint(folded)


def test_a_page_says_shapes_and_kernels(digits: Graph) -> None:
    (program,) = read_page(html_page(digits, "digits"))
    pool = program.nodes["MaxPool2d"]
    assert pool["outputs"] == ["float32 [?,4,4,32]"]
    assert pool["inputs"] == [("Relu_1", ":0")]
    assert pool["kernel"]
    assert "ksize = [1, 2, 2, 1]" in pool["details"]
    assert program.nodes["Conv2D"]["folded"] == {"conv1/kernel": "[3,3,1,16]"}
    assert program.nodes["Conv2D"]["kind"] == "product"


def test_times_are_told(digits: Graph) -> None:
    (program,) = read_page(html_page(digits, "digits", {"Relu": 0.003, "digit": 0.00001}))
    times = {name: node["seconds"] for name, node in program.nodes.items() if node["seconds"]}
    assert times == {"Relu": 0.003, "digit": 0.00001}


def test_times_in_functions_are_those_of_all_calls() -> None:
    body = define("F(x: float) -> (y: float)", ["n = Neg[T=float](x)"], y="n:y")
    lines = ("x = Placeholder[dtype=float]()", "a = F(x)", "b = F(x)")
    graph = graph_of(library_of(body), *lines)
    seconds = {"a/n": 0.002, "b/n": 0.003, "x/n": 0.1}
    _, function = read_page(html_page(graph, "", seconds))
    assert function.nodes["n"]["seconds"] == pytest.approx(0.005)


def test_the_nodes_of_a_layer_form_a_scope() -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[None, 3], name="x")
        for block in range(1, 6):
            for part in ("expand", "expand_relu", "project", "relu", "add"):
                x = raw_ops.AddV2(x=x, y=x, name=f"net/block_{block}_{part}/add")
        raw_ops.Neg(x=x, name="net/head/neg")
    (program,) = read_page(html_page(graph, "layers"))
    assert program.scopes == {"net", *(f"net/block_{block}" for block in range(1, 6))}


def test_layers_make_no_cycles() -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[None, 3], name="x")
        for number in range(1, 15):
            for name in (f"conv{number}_in", f"norm_{number}", f"conv{number}_out"):
                x = raw_ops.AddV2(x=x, y=x, name=name)
    (program,) = read_page(html_page(graph, "layers"))
    assert program.scopes == set()


def test_variables_that_are_only_read_stand_with_the_nodes_that_take_them() -> None:
    with Graph().as_default() as graph:
        read, written = (
            raw_ops.VarHandleOp(dtype=float32, shape=[3], shared_name=name, name=name)
            for name in ("read", "written")
        )
        raw_ops.AssignVariableOp(resource=written, value=np.ones(3, np.float32), name="assign")
        values = [raw_ops.ReadVariableOp(resource=one, dtype=float32) for one in (read, written)]
        raw_ops.AddV2(x=values[0], y=values[1], name="sum")
    (program,) = read_page(html_page(graph, "variables"))
    assert program.nodes["sum"]["folded"] == {"read": "[3]"}
    assert "read" not in program.boxes
    assert {"written", "assign", "sum"} < program.boxes


def test_nothing_is_fetched_and_notebooks_have_no_scripts(digits: Graph) -> None:
    page, notebook = html_page(digits, "digits"), notebook_html(digits)
    for text in (page, notebook):
        assert not re.search(r"(?:src|href)=[\"'](?!#)|@import|url\(", text)
    assert "<script" not in notebook
    assert not re.search(r"\son\w+=", notebook)
    assert digits._repr_html_() == notebook


@pytest.mark.parametrize("graph", [deep_graph(3, 3), deep_graph(12, 9), deep_graph(150, 1)])
def test_all_nodes_of_scopes_have_boxes(graph: Graph) -> None:
    (program,) = read_page(html_page(graph, "scopes"))
    assert program.boxes == {op.name for op in graph}
    assert len(program.tree) <= 240


def test_a_page_of_many_nodes_is_small() -> None:
    graph = deep_graph(50, 100)
    page = html_page(graph, "scopes")
    assert len(read_page(page)[0].boxes) == 20_001
    assert len(page) < 400_000


def test_a_page_of_many_nodes_without_scopes_is_cut_into_parts() -> None:
    graph = graph_of(library_of(), *(f"n{at} = Placeholder[dtype=float]()" for at in range(3000)))
    (program,) = read_page(html_page(graph, "flat"))
    assert len(program.tree) <= 240
    assert program.boxes == {op.name for op in graph}


def test_a_notebook_of_a_large_graph_stays_small_and_says_so() -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[], name="x")
        for _ in range(3000):
            x = raw_ops.Neg(x=x)
    text = notebook_html(graph)
    assert len(text) < 1_000_000
    told = re.search(r"([\d,]+) nodes in closed scopes are not drawn: (.*?)</div>", text)
    assert told is not None
    kinds = [attrs.get("class") or "" for attrs in Elements(text).named("g")]
    boxes = sum("ok-node" in kind and "ok-scope" not in kind for kind in kinds)
    assert int(told[1].replace(",", "")) == 3001 - boxes
    assert "opkernel show MODEL --html" in told[2]


def test_a_loop_has_a_back_edge_and_no_others() -> None:
    graph = graph_of(
        library_of(),
        "x = Placeholder[dtype=float]()",
        "limit = Placeholder[dtype=float]()",
        "enter = Enter[T=float; frame_name='f'; is_constant=false; parallel_iterations=1](x)",
        "all = Enter[T=float; frame_name='f'; is_constant=true; parallel_iterations=1](limit)",
        "merge = Merge[T=float; N=2](enter, next)",
        "less = Less[T=float](merge, all)",
        "cond = LoopCond(less)",
        "switch = Switch[T=float](merge, cond)",
        "double = AddV2[T=float](switch:1, switch:1)",
        "next = NextIteration[T=float](double)",
        "exit = Exit[T=float](switch)",
    )
    kinds = [a.get("class") or "" for a in Elements(notebook_html(graph)).named("path")]
    assert sum("ok-back" in kind and "ok-arrow" not in kind for kind in kinds) == 1


def test_functions_have_views_of_their_own() -> None:
    @function
    def shrink(x):
        return while_loop(lambda one: one > 1.0, lambda one: one / 2.0, [x])

    with Graph().as_default() as graph:
        shrink(raw_ops.Placeholder(dtype=float32, shape=[], name="x"))
    whole, *functions = read_page(html_page(graph, "functions"))
    assert len(functions) > 1
    assert [one.label for one in functions] == [*graph.function_library]
    (call,) = (node for node in whole.nodes.values() if node["functions"])
    assert call["functions"][0].startswith("shrink")
    body = shrink.get_concrete_function(np.float32(4)).graph
    assert "<svg" in body._repr_html_()


def test_what_has_no_kernel_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "model.pbtxt"
    file.write_text('node { name: "a" op: "Nobody" } versions { producer: 1000 }')
    graph = load_graph(file, allow_unregistered=True)
    (program,) = read_page(html_page(graph, "unknown"))
    assert program.nodes["a"]["kind"] == "missing"


def test_an_empty_graph_can_be_drawn() -> None:
    assert read_page(html_page(Graph(), "nothing"))[0].names == []
    assert "0 operations" in notebook_html(Graph())


@pytest.mark.parametrize("shift", range(0, len(WRITTEN), 5))
def test_hostile_text_is_text(shift: int) -> None:
    made = model()
    for number, put in enumerate(ANY_TEXT):
        put(made, WRITTEN[(number + shift) % len(WRITTEN)])
    graph = imported(made)
    plain_notebook = tags(notebook_html(imported(model())))
    page, notebook = html_page(graph, WRITTEN[shift]), notebook_html(graph)
    assert outside_of_data(page) == outside_of_data(html_page(Graph(), WRITTEN[shift]))
    assert tags(page) == tags(html_page(Graph(), "plain"))
    assert tags(notebook) == plain_notebook
    for text in (page, notebook):
        assert all(c.isprintable() or c == "\n" for c in text)
    for program in read_page(page):
        texts = [program.label, *program.names, *map(str, program.nodes.values())]
        assert all(text.isprintable() for text in texts)


def outside_of_data(page: str) -> str:
    before, _, after = page.partition('id="data">')
    return before + after.partition("<")[2]


def tags(text: str) -> set[str]:
    found = Elements(text).found
    attrs: set[Any] = {name for _, given in found for name in given}
    assert not {name for name in attrs if name.startswith("on")}
    return {tag for tag, _ in found}


def test_names_of_many_slashes_and_of_none() -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[], name="a/" * 3000 + "x")
        for name in ("a", "a/a", "b//c", "b/", "b"):
            x = raw_ops.Neg(x=x, name=name)
    (program,) = read_page(html_page(graph, "deep"))
    assert len(program.boxes) == len(graph)
    assert {"a", "a/a", "b//c"} < program.boxes
