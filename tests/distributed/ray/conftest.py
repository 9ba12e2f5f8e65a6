"""Ray for the tests that need it: started once, with few processors and little memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opkernel.distributed import RayCluster


@pytest.fixture(scope="session")
def ray() -> Iterator[object]:
    """The module, initialised."""
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=200 << 20,
        log_to_driver=False,
        logging_level="error",
    )
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def cluster(ray: object) -> Iterator[RayCluster]:
    with RayCluster({"ps": 1, "worker": 3}) as cluster:
        yield cluster
