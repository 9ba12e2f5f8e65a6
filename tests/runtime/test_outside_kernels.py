"""Kernels of a package outside that claim what ours claim: plans treat them as they treat ours."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.kernel import global_kernel_registry

PACKAGE = '''
"""Kernels in the places of ours."""

import numpy as np

from opkernel import KernelContract, float32, register_kernel

CLAIMS = KernelContract(outputs_as_declared=True)
ELEMENTWISE = KernelContract(outputs_as_declared=True, elementwise=True)
FILLS = KernelContract(outputs_as_declared=True, elementwise=True, takes_out=True)


def added(x, y, *, out=None):
    return np.add(x, y, out=out)


def convolved(input, filter, *, strides, padding):
    assert padding == "SAME" and strides == [1, 1, 1, 1]
    rows, columns = filter.shape[:2]
    padded = np.pad(input, [(0, 0), (rows // 2, rows // 2), (columns // 2, columns // 2), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (rows, columns), axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, filter)


def register(add, claims):
    in_floats = {"device": "CPU", "types": {"T": float32}, "priority": 1}
    register_kernel("AddV2", contract=claims["add"], **in_floats)(add)
    register_kernel("Conv2D", contract=claims["conv"], **in_floats)(convolved)
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package that is no part of ours; what it registers is gone after the test."""
    (tmp_path / "kernels_from_outside").mkdir()
    (tmp_path / "kernels_from_outside" / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    registry = global_kernel_registry()
    before = set(registry.registrations_for("AddV2") + registry.registrations_for("Conv2D"))
    yield importlib.import_module("kernels_from_outside")
    del sys.modules["kernels_from_outside"]
    for op in ("AddV2", "Conv2D"):
        for registration in set(registry.registrations_for(op)) - before:
            registry.unregister(registration)


def network() -> tuple[opkernel.Graph, list[Any]]:
    """A convolution, sums of arrays, enough of them to be computed in tiles, and sums of numbers."""
    rng = np.random.default_rng(0)
    with opkernel.Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, name="x")
        n = raw_ops.Placeholder(dtype=opkernel.float32, name="n")
        filters = rng.standard_normal((3, 3, 2, 4), np.float32)
        y = raw_ops.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="SAME")
        for _ in range(5):
            y = raw_ops.AddV2(x=y, y=rng.standard_normal(4, np.float32))
        z = raw_ops.AddV2(x=raw_ops.AddV2(x=n, y=np.float32(1)), y=n)
    return graph, [y, z]


def plan_and_results() -> tuple[str, list[Any]]:
    graph, fetches = network()
    results = []
    with opkernel.Session(graph, optimize=False) as session:
        for side in (4, 256):  # node by node; and in tiles
            x = np.random.default_rng(1).standard_normal((1, side, side, 2), np.float32)
            results += session.run(fetches, {"x:0": x, "n:0": np.float32(2)})
        return session.plan(fetches, ["x:0", "n:0"]).source, results


def test_the_same_claims_give_the_same_plan(outside: ModuleType) -> None:
    text, expected = plan_and_results()
    assert re.search(r"convolved\w*\(x, ", text)
    assert re.search(r"add\((\w+), \w+, \1\)", text), "written over an operand that dies"
    assert "tiled(" in text
    assert " + " in text, "an operator"
    outside.register(np.add, {"add": outside.ELEMENTWISE, "conv": outside.CLAIMS})
    same, results = plan_and_results()
    assert same == text
    for value, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)


def test_a_function_that_takes_out_gives_the_same_plan_by_its_name(outside: ModuleType) -> None:
    text, expected = plan_and_results()
    outside.register(outside.added, {"add": outside.FILLS, "conv": outside.CLAIMS})
    same, results = plan_and_results()
    same = re.sub(r"added\((\w+), (\w+), out=(\w+)\)", r"add(\1, \2, \3)", same)
    same = re.sub(r"added\(", "add(", same)
    text = re.sub(r"\+ (\w+_y)_1\b", r"+ \1", text)  # operators take constants as numbers
    assert same == re.sub(r"= (\w+) \+ (\w+)", r"= add(\1, \2)", text)  # no operator stands for it
    for value, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("add", [np.add, lambda x, y: x + y], ids=["ufunc", "function"])
def test_without_claims_nothing_is_taken_for_granted(outside: ModuleType, add: Any) -> None:
    """But for the type that a ufunc gives, which NumPy tells."""
    claims = {"add": opkernel.KernelContract(), "conv": opkernel.KernelContract()}
    _, expected = plan_and_results()
    outside.register(add, claims)
    text, results = plan_and_results()
    assert "tiled(" not in text
    assert not re.search(r"add\(\w+, \w+, \w+\)", text)
    for value, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)
