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

    @property
    def nodes(self) -> set[str]:
        return {attrs["data-name"] or "" for attrs in self.named("g") if "data-name" in attrs}

    @property
    def folded(self) -> set[str]:
        lists = (attrs.get("data-folded") or "" for attrs in self.named("g"))
        return {name for names in lists for name in names.split("\n") if name}


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
    found = Elements(html_page(digits, "digits"))
    assert found.nodes | found.folded == {op.name for op in digits}
    assert "conv1/kernel" in found.folded


def test_a_page_says_shapes_and_kernels(digits: Graph) -> None:
    texts = Elements(html_page(digits, "digits")).texts
    assert "float32 [?,8,8,16]" in texts
    assert "+ conv1/kernel [3,3,1,16]" in texts
    (title,) = [text for text in texts if text.startswith("MaxPool2d\n")]
    assert re.search(r"kernel: \w+", title)
    assert "ksize = [1, 2, 2, 1]" in title
    assert "takes: Relu_1:0" in title


def test_times_are_told_and_the_hot_ones_coloured(digits: Graph) -> None:
    page = html_page(digits, "digits", {"Relu": 0.003, "digit": 0.00001})
    found = Elements(page)
    assert "3.000 ms" in found.texts
    assert "0.010 ms" in found.texts
    hot = {a["data-name"] for a in found.named("g") if "ok-hot3" in (a.get("class") or "")}
    assert hot == {"Relu"}
    assert "3.010 ms a step" in page


def test_times_in_functions_are_those_of_all_calls() -> None:
    body = define("F(x: float) -> (y: float)", ["n = Neg[T=float](x)"], y="n:y")
    lines = ("x = Placeholder[dtype=float]()", "a = F(x)", "b = F(x)")
    graph = graph_of(library_of(body), *lines)
    seconds = {"a/n": 0.002, "b/n": 0.003, "x/n": 0.1}
    assert "5.000 ms" in Elements(html_page(graph, "", seconds)).texts


def test_nothing_is_fetched_and_notebooks_have_no_scripts(digits: Graph) -> None:
    page, notebook = html_page(digits, "digits"), notebook_html(digits)
    for text in (page, notebook):
        assert not re.search(r"(?:src|href)=[\"'](?!#)|@import|url\(", text)
    assert "<script" not in notebook
    assert not re.search(r"\son\w+=", notebook)
    assert digits._repr_html_() == notebook


@pytest.mark.parametrize("graph", [deep_graph(3, 3), deep_graph(12, 9), deep_graph(150, 1)])
def test_all_nodes_of_scopes_are_in_some_view(graph: Graph) -> None:
    page = Elements(html_page(graph, "scopes"))
    assert page.nodes == {op.name for op in graph}
    ids = {attrs["id"] for attrs in page.named("section")}
    assert {attrs["href"] for attrs in page.named("a")} == {f"#{one}" for one in ids}


def test_a_view_stays_small() -> None:
    page = html_page(deep_graph(150, 1), "scopes")
    for view in re.findall(r"<section.*?</section>", page, re.DOTALL):
        assert len(Elements(view).nodes) <= 60


def test_a_notebook_of_a_large_graph_stays_small_and_says_so() -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[], name="x")
        for _ in range(3000):
            x = raw_ops.Neg(x=x)
    text = notebook_html(graph)
    assert len(text) < 1_000_000
    told = re.search(r"([\d,]+) nodes in closed scopes are not drawn: (.*?)</div>", text)
    assert told is not None
    assert int(told[1].replace(",", "")) == 3001 - len(Elements(text).nodes)
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
    kinds = [a.get("class") or "" for a in Elements(html_page(graph, "loop")).named("path")]
    assert sum("ok-back" in kind and "ok-arrow" not in kind for kind in kinds) == 1


def test_functions_have_views_of_their_own() -> None:
    @function
    def shrink(x):
        return while_loop(lambda one: one > 1.0, lambda one: one / 2.0, [x])

    with Graph().as_default() as graph:
        shrink(raw_ops.Placeholder(dtype=float32, shape=[], name="x"))
    page = html_page(graph, "functions")
    assert len(graph.function_library) > 1
    for name in graph.function_library:
        assert f"function {name[:30]}" in page
    body = shrink.get_concrete_function(np.float32(4)).graph
    assert "<svg" in body._repr_html_()


def test_what_has_no_kernel_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "model.pbtxt"
    file.write_text('node { name: "a" op: "Nobody" } versions { producer: 1000 }')
    graph = load_graph(file, allow_unregistered=True)
    groups = list(Elements(html_page(graph, "unknown")).named("g"))
    assert [one["data-name"] for one in groups if "ok-missing" in (one.get("class") or "")] == ["a"]


def test_an_empty_graph_can_be_drawn() -> None:
    assert "0 operations" in html_page(Graph(), "nothing")
    assert "0 operations" in notebook_html(Graph())


@pytest.mark.parametrize("shift", range(0, len(WRITTEN), 5))
def test_hostile_text_is_text(shift: int) -> None:
    made = model()
    for number, put in enumerate(ANY_TEXT):
        put(made, WRITTEN[(number + shift) % len(WRITTEN)])
    graph = imported(made)
    plain = tags(html_page(imported(model()), "plain"))
    plain_notebook = tags(notebook_html(imported(model())))
    page, notebook = html_page(graph, WRITTEN[shift]), notebook_html(graph)
    assert tags(page) == plain
    assert tags(notebook) == plain_notebook
    for text in (page, notebook):
        assert all(c.isprintable() or c == "\n" for c in text)


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
    assert Elements(html_page(graph, "deep")).nodes == {op.name for op in graph}
