"""RayObjectStore: large values in the object store of Ray, which the tasks of a machine read without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.distributed.collectives.object_store import LARGE_BYTES, ObjectStore
from opkernel.errors import UnavailableError
from opkernel.libraries import library


class RayObjectStore(ObjectStore):
    """Ray's object store; to be made in a process where Ray is initialised."""

    def __init__(self) -> None:
        self._ray = library("ray", "A task")

    def share(self, value: Any) -> Any:
        """A reference to a large value; a small value itself."""
        return self._ray.put(value) if getattr(value, "nbytes", 0) >= LARGE_BYTES else value

    def fetch(self, shared: Sequence[Any]) -> list[Any]:
        """The values, read-only where they are in the store."""
        places = [i for i, one in enumerate(shared) if isinstance(one, self._ray.ObjectRef)]
        values = list(shared)
        try:
            found = self._ray.get([shared[i] for i in places]) if places else []
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())
            raise UnavailableError(f"A tensor of another task is gone: {reason}") from error
        for i, value in zip(places, found, strict=True):
            values[i] = value
        return values
