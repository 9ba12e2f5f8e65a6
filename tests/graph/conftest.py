"""Graphs over the ops of `builders`."""

from collections.abc import Callable

import pytest
from tests.graph.builders import REGISTRY

from opkernel.graph import Graph


@pytest.fixture
def graph() -> Graph:
    """An empty graph over the ops above."""
    return Graph(REGISTRY)


@pytest.fixture
def make_graph() -> Callable[[], Graph]:
    """Makes empty graphs."""
    return lambda: Graph(REGISTRY)
