"""The page in a browser: searching, opening, folding and switching to dark work, without an error."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cli.hostile_models import ANY_TEXT, imported, model
from tests.graph.function_builders import graph_of, library_of
from tests.hostile_names import HOSTILE_TEXT

from opkernel import Graph, float32, function, load_graph, raw_ops, while_loop
from opkernel.drawing import DrawnCluster, html_page

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.pb"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync --dump-dom "
    "--disable-background-networking --disable-component-update --virtual-time-budget=4000"
)
SCRIPT = """
const root = document.documentElement;
const failed = (event) => { root.dataset.failed = event.message ?? event.reason; };
window.addEventListener("error", failed);
window.addEventListener("unhandledrejection", failed);
for (const name of ["alert", "fetch", "open"]) window[name] = () => { root.dataset.failed = name; };
const waiting = setInterval(() => {
  if (!root.dataset.drawn) return;
  clearInterval(waiting);
  const click = (group) => group.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const boxes = () => [...document.querySelectorAll("main svg .ok-node")];
  const named = (name) => boxes().find((box) => box.querySelector(".ok-name").textContent === name);
  const find = (text) => {
    $("search").value = text;
    $("search").dispatchEvent(new Event("input"));
    document.querySelector("#found button").click();
  };
  const told = (text) => document.body.append(html("pre", { class: "told" }, text));
  ACT
  root.dataset.done = "true";
}, 20);
"""

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


def told(
    graph: Graph,
    act: str,
    tmp_path: Path,
    title: str = "page",
    clusters: Sequence[DrawnCluster] = (),
) -> tuple[list[str], str]:
    """What a script tells of a page that it acts on, and the page's elements at the end."""
    page = html_page(graph, title, clusters=clusters)
    script = SCRIPT.replace("ACT", act)
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    done = subprocess.run(
        [str(CHROMIUM), *OPTIONS.split(), f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    dom = done.stdout
    assert "data-failed" not in dom, dom[:300]
    assert 'data-done="true"' in dom
    texts = [part.partition("</pre>")[0] for part in dom.split('<pre class="told">')[1:]]
    return texts, dom


@needs_chromium
def test_a_page_is_searched(tmp_path: Path) -> None:
    act = 'find("maxpool"); told($("details").textContent); $("theme").click(); $("fit").click();'
    (details,), dom = told(load_graph(DIGITS), act, tmp_path)
    assert ">1 found<" in dom
    assert 'class="ok-node ok-plain ok-found"' in dom
    assert 'data-theme="dark"' in dom
    assert details.startswith("MaxPool2d\nop: MaxPool\ngives: float32 [?,4,4,32]\ntakes: Relu_1:0")


@needs_chromium
def test_a_constant_is_found_in_the_box_that_takes_it(tmp_path: Path) -> None:
    act = """find("conv2/kernel");
    told(document.querySelector(".ok-found .ok-name").textContent);"""
    (name,), _ = told(load_graph(DIGITS), act, tmp_path)
    assert name == "Conv2D_1"


@needs_chromium
def test_scopes_open_and_fold(tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[None, 3], name="x")
        for block in range(40):
            for layer in range(3):
                x = raw_ops.AddV2(x=x, y=x, name=f"net/block{block}/layer{layer}/add")
                x = raw_ops.Neg(x=x, name=f"net/block{block}/layer{layer}/neg")
    act = """
    told(boxes().length);
    click(named("block7/"));
    told(boxes().length);
    click(named("layer1/"));
    told([named("add"), named("neg")].every(Boolean));
    click([...document.querySelectorAll(".ok-frame > text")].find((text) => text.textContent === "− block7"));
    told(boxes().length);
    find("block39/layer2/neg");
    told(document.querySelector(".ok-found .ok-shape").textContent);
    $("close").click();
    told(boxes().length);
    """
    counts, _ = told(graph, act, tmp_path)
    assert counts == ["41", "43", "true", "41", "float32 [?,3]", "2"]


@needs_chromium
def test_a_large_graph_is_drawn_in_part(tmp_path: Path) -> None:
    nodes = (f"scope{at // 100}/n{at} = Placeholder[dtype=float]()" for at in range(20_000))
    act = 'told(boxes().length < 300); find("n19999"); told($("details").textContent);'
    (is_small, details), _ = told(graph_of(library_of(), *nodes), act, tmp_path)
    assert is_small == "true"
    assert details.startswith("scope199/n19999\nop: Placeholder")


@needs_chromium
def test_loops_are_drawn_with_their_back_edges_and_functions_are_opened(tmp_path: Path) -> None:
    @function
    def shrink(x):
        return while_loop(lambda one: one > 1.0, lambda one: one / 2.0, [x])

    with Graph().as_default() as graph:
        shrink(raw_ops.Placeholder(dtype=float32, shape=[], name="x"))
    act = """
    click(boxes().find((box) => box.classList.contains("ok-flow")));
    $("calls").querySelector("button").click();
    told($("facts").textContent);
    """
    (facts,), _ = told(graph, act, tmp_path)
    assert facts.startswith("shrink")
    (numbers,), _ = told(
        graph_of_loop(),
        'told(document.querySelectorAll("path.ok-back:not(.ok-arrow)").length);',
        tmp_path,
    )
    assert numbers == "1"


def graph_of_loop() -> Graph:
    """A loop of TensorFlow 1."""
    return graph_of(
        library_of(),
        "x = Placeholder[dtype=float]()",
        "enter = Enter[T=float; frame_name='f'; is_constant=false; parallel_iterations=1](x)",
        "merge = Merge[T=float; N=2](enter, next)",
        "zero = Const[dtype=float; value=<dtype: DT_FLOAT tensor_shape {} float_val: 0>](^merge)",
        "less = Less[T=float](merge, zero)",
        "cond = LoopCond(less)",
        "switch = Switch[T=float](merge, cond)",
        "double = AddV2[T=float](switch:1, switch:1)",
        "next = NextIteration[T=float](double)",
        "exit = Exit[T=float](switch)",
    )


@needs_chromium
def test_a_cluster_opens_to_its_operations(tmp_path: Path) -> None:
    parts = {"Relu_1": 0.002, "MaxPool2d": 0.0, "gone": 0.0}
    act = """
    told($("facts").textContent);
    $("clusters").querySelector("summary").click();
    told([...document.querySelectorAll("#clusters li li")].map((row) => row.textContent).join("|"));
    document.querySelectorAll("#clusters li li button")[1].click();
    told($("details").textContent);
    """
    cluster = DrawnCluster("cluster_0", "openvino", 0.005, parts)
    (facts, rows, details), dom = told(load_graph(DIGITS), act, tmp_path, clusters=[cluster])
    assert (
        facts == "graph: 28 operations, 3.000 ms a step"
    )  # the nodes of a graph have no times here
    assert "openvino cluster_0" in dom
    assert rows == "Relu_1 2.000 ms|MaxPool2d|gone"
    assert details.startswith("MaxPool2d\nop: MaxPool\n")


@needs_chromium
def test_hostile_text_is_text(tmp_path: Path) -> None:
    made = model()
    texts = [text for text in HOSTILE_TEXT if not any("\ud800" <= c <= "\udfff" for c in text)]
    for number, put in enumerate(ANY_TEXT):
        put(made, texts[number % len(texts)])
    graph = imported(made)
    with graph.as_default():
        for number, text in enumerate(texts):
            raw_ops.VarHandleOp(dtype=float32, shape=[], shared_name=text[:1000], name=f"n{number}")
    act = """
    for (const one of document.querySelectorAll("#clusters details")) one.open = true;
    const elements = new Set([...document.querySelectorAll("*")].map((one) => one.tagName.toLowerCase()));
    all.programs.forEach((_, number) => {
      current = programOf(number);
      describe();
      draw();
      for (const item of [...shown.keys()]) select(item);
      $("search").value = "a";
      search();
    });
    told([...document.querySelectorAll("*")].map((one) => one.tagName.toLowerCase())
      .filter((name) => !elements.has(name) && !["title", "path", "details", "summary", "button"].includes(name)).join());
    """
    clusters = [DrawnCluster(text, text, 1.0, {text: 1.0}) for text in texts]
    (unknown,), _ = told(
        graph, act, tmp_path, clusters=clusters, title="</title><img src=x onerror=alert(1)>"
    )
    assert unknown == ""
