"""Ray, for the tests that need it."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray() -> Iterator[object]:
    """Ray's module; Ray is started once, with few processors and little memory."""
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
