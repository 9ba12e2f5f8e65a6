"""The provider beside this file, tested as any other."""

from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.kernel import KernelProvider, registered_providers
from opkernel.testing import check_provider
from opkernel.types import float32


@pytest.fixture(scope="module")
def blocked() -> KernelProvider:
    opkernel.load_library(Path(__file__).parent)
    return next(one for one in registered_providers() if one.name == "blocked")


def test_it_gives_what_the_reference_gives(blocked: KernelProvider) -> None:
    (report,) = check_provider(blocked, max_examples=40)
    assert report.op == "MatMul"
    assert report.ran > 20


def test_weights_are_cut_once(blocked: KernelProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []
    prepare = blocked.prepare

    def noted(input: object, value: object, version: int) -> object:
        prepared.append(version)
        return prepare(input, value, version)

    monkeypatch.setattr(blocked, "prepare", noted)
    weights = np.arange(300, dtype=np.float32).reshape(3, 100)
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [2, 3])
        y = opkernel.raw_ops.MatMul(a=x, b=opkernel.constant(weights))
    with opkernel.Session(graph, providers=["blocked"]) as session:
        for _ in range(3):
            found = session.run(y, {x: np.eye(2, 3)})
            np.testing.assert_array_equal(found, weights[:2])
    assert prepared == [0]
