"""A cluster on Ray for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opkernel.distributed import RayCluster


@pytest.fixture(scope="module")
def cluster(ray: object) -> Iterator[RayCluster]:
    with RayCluster({"ps": 1, "worker": 3}) as cluster:
        yield cluster
