"""Plans for feeds whose shapes repeat, beside the general plan: models of unknown batch, their gradients.

    python benchmarks/shapes_that_repeat.py [MODEL...]

The models are those of ../shared/models, run with the batch of their case. Prints the statements of both
plans, the time of a step of each, and how long the step that compiles the second takes.
"""

import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, interleaved, note_row, rerun_in_clean_environment

import opkernel
from opkernel import Tensor
from opkernel.optimization import optimization_passes

MODELS = Path(__file__).parents[2] / "shared" / "models"
NAMES = ["bert_tiny", "conv_mix", "functional_control_flow", "lstm_lowered", "mlp"]
OTHERS = {one.name for one in optimization_passes()} - {"shape_specialization"}


def compare(name: str, fetches: Sequence[Tensor], feeds: dict[str, Any]) -> None:
    """Print how both plans do."""
    graph, values = fetches[0].graph, list(feeds.values())
    sessions = {
        "general": opkernel.Session(graph, optimize=OTHERS),
        "of its own": opkernel.Session(graph),
    }
    calls = {key: s.make_callable(fetches, list(feeds)) for key, s in sessions.items()}
    for _ in range(3):
        start = time.perf_counter()
        calls["of its own"](*values)
        compiled = time.perf_counter() - start
    session, shapes = sessions["of its own"], [np.shape(value) for value in values]
    plans = session.plan(fetches, list(feeds)), session.plan(fetches, list(feeds), shapes)
    lines = [len(plan.source.splitlines()) for plan in plans]
    seconds = interleaved({key: partial(call, *values) for key, call in calls.items()})
    general, own = seconds.values()
    note_row(Row(name, own, "the general plan", general))
    print(
        f"{name:26} {lines[0]:5} {lines[1]:5} lines  {general * 1e6:9.1f} {own * 1e6:9.1f} us "
        f"({general / own:.2f} x)  compiled in {compiled * 1e3:.0f} ms"
    )


def gradient(fetch: Tensor, feed: Tensor) -> Tensor:
    """The gradient by the first floats that are computed from what is fed."""
    while not feed.dtype.is_floating:
        feed = feed.consumers()[0].outputs[0]
    with fetch.graph.as_default():
        found: list[Tensor] = opkernel.gradients(fetch, feed)
    return found[0]


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        folder = MODELS / name
        manifest = json.loads((folder / "manifest.json").read_text())
        with np.load(folder / "case.npz") as case:
            feeds = {feed: case[f"feed:{feed}"] for feed in manifest["feeds"]}
        graph = opkernel.load_graph(folder / "graph.pb")
        fetches = [graph.get_tensor_by_name(fetch) for fetch in manifest["fetches"]]
        compare(name, fetches, feeds)
        if len(feeds) == 1:
            feed = graph.get_tensor_by_name(*feeds)
            compare(f"{name}, gradient", [gradient(fetches[0], feed)], feeds)


if __name__ == "__main__":
    rerun_in_clean_environment()
    main()
