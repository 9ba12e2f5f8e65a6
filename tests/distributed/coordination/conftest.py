"""Ray, for the tests of this folder that need it."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def ray_is_running() -> Iterator[None]:
    import ray

    memory = 200 * 1024 * 1024
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=memory, log_to_driver=False)
    yield
    ray.shutdown()
