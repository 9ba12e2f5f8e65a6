"""CheckpointReaderCache: readers of checkpoints that stay open between steps.

Source: TensorFlow core/util/tensor_slice_reader_cache.cc.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkernel.checkpoint.checkpoint_reader import CheckpointReader

_MAX_READERS = 8


class CheckpointReaderCache:
    """The readers that were used last; used from any thread.

    A reader is opened anew once one of the checkpoint's files has changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[Hashable, tuple[object, CheckpointReader]] = {}

    def get(
        self, key: Hashable, files: list[str], open_reader: Callable[[], CheckpointReader]
    ) -> CheckpointReader:
        """The reader of a checkpoint, which is not to be closed.

        Args:
            key: Its prefix, and what decides which of its files may be read.
            files: Those of its files that tell whether it is the same as before.
            open_reader: Opens it.
        """
        state = [_state(file) for file in files]
        with self._lock:
            known = self._readers.pop(key, None)
            if known is not None and known[0] == state:
                self._readers[key] = known
                return known[1]
        reader = open_reader()
        with self._lock:
            self._readers[key] = state, reader
            while len(self._readers) > _MAX_READERS:
                # Its files are closed with the last reference to it: a step may still read.
                del self._readers[next(iter(self._readers))]
        return reader


def _state(file: str) -> object:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
