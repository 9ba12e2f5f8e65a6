"""Files that readers of a test have left open are closed after it."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.ops.readers.reading import MADE

from opkernel.errors import OpError


@pytest.fixture(autouse=True)
def _readers_are_reset() -> Iterator[None]:
    yield
    while MADE:
        with suppress(OpError):  # the session may be closed, or have no time
            MADE.pop().reset()
