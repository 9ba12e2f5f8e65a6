"""What the tests of passes share: after each pass, all operations are in the loops that they were in."""

from collections.abc import Iterator

import pytest
from tests.optimization.frame_check import frames_are_checked


@pytest.fixture(autouse=True)
def frames_stay() -> Iterator[None]:
    with frames_are_checked():
        yield
