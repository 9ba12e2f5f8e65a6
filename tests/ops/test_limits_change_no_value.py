"""A call gives the same with limits as without: what is computed in parts, or looks at the clock, has the same values.

The calls are small. So the parts that large calls are cut into are made small as well.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from tools.campaigns.scaled_samples import samples

import opkernel
from opkernel.device import work_clock
from opkernel.device.budget import Budget
from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.kernel import bounded, under_budget
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.proto import GraphDef

CALLS_OF_AN_OP = 3
WAIT = {"Unstage"}
"""Calls that wait for another step."""
ROUNDED_BY_PLACE = {"Pow"}
"""In NumPy 2.1 the last place of a double depends on where in the array it stands: whole vectors round otherwise."""
ROOMS = sorted({module.split(".")[0] for module in MODULE_OF_OP.values()})


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_PIECE", 3)
    monkeypatch.setattr(work_clock, "LOOK_AFTER", 1)


def outcome(graph_def: GraphDef, limits: AbstractContextManager[object], **more: Any) -> list[str]:
    """What the last node of a graph gives, or its error."""
    with limits:
        try:
            with Graph().as_default() as graph:
                import_graph_def(graph_def, name="")
                called = graph.get_operations()[-1]
                with opkernel.Session(graph, **more) as session:
                    found = session.run(list(called.outputs) or called)
        except OpError as error:
            return [f"{error.code.name}: {error.message}"]
    return [text_of(one, called.type) for one in found or []]


def text_of(value: Any, op: str) -> str:
    array = np.asarray(value)
    if op in ROUNDED_BY_PLACE and array.dtype == np.float64:
        array = array.astype(np.float32)
    content = list(map(str, array.flat)) if array.dtype == object else array.tobytes()
    return f"{array.dtype}{array.shape} {content!r}"


def is_random(graph_def: GraphDef, once: list[str]) -> bool:
    """Whether some further calls give another outcome; a random order of three rows comes again one time in six."""
    return any(outcome(graph_def, nullcontext()) != once for _ in range(40))


@pytest.mark.parametrize("room", ROOMS)
def test_limits_change_no_value(room: str) -> None:
    different = {}
    for op, module in MODULE_OF_OP.items():
        if module.split(".")[0] != room or op in WAIT:
            continue
        for graph_def in samples().get(op, [])[:CALLS_OF_AN_OP]:
            limits = under_budget(Budget(deadline=time.monotonic() + 1000))
            within = outcome(graph_def, limits, memory_limit_bytes=1 << 30)
            if within[0:1] and within[0].startswith("RESOURCE_EXHAUSTED"):
                continue  # without a limit it would take the memory
            without = outcome(graph_def, nullcontext())
            if within != without and not is_random(graph_def, without):
                different[op] = within, without
    assert different == {}
