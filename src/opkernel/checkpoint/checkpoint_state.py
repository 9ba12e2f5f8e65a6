"""The file `checkpoint` of a directory, which names its latest checkpoint, and CheckpointManager, which keeps it.

Source: TensorFlow python/checkpoint/checkpoint_management.py.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from opkernel.checkpoint.atomic_files import make_directory, write_whole
from opkernel.checkpoint.bundle_reader import index_file
from opkernel.checkpoint.loading import checkpoint_exists, files_of_v1
from opkernel.checkpoint.sstable import is_table
from opkernel.errors import DataLossError, InvalidArgumentError
from opkernel.file_errors import checked_path
from opkernel.proto import CheckpointState
from opkernel.tracebacks import entrances

STATE_FILE = "checkpoint"
_HOUR_S = 3600.0


def get_checkpoint_state(
    directory: str | os.PathLike[str], latest_filename: str | None = None
) -> CheckpointState | None:
    """What the state file of a directory says, its relative paths with the directory; None without one.

    Raises:
        DataLossError: the file is damaged, or names no latest checkpoint.
    """
    from google.protobuf import text_format  # slow to import

    folder = os.fspath(directory)
    path = os.path.join(folder, latest_filename or STATE_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            state = text_format.Parse(file.read(), CheckpointState())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, text_format.ParseError) as error:
        raise DataLossError(f"{path} cannot be read: {error}") from error
    if not state.model_checkpoint_path:
        raise DataLossError(f"{path} names no checkpoint")
    state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    for index, one in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[index] = os.path.join(folder, one)
    return state


def latest_checkpoint(
    directory: str | os.PathLike[str], latest_filename: str | None = None
) -> str | None:
    """The prefix of the latest checkpoint of a directory, if its files are there; else None.

    Raises:
        DataLossError: the state file is damaged.
    """
    state = get_checkpoint_state(directory, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return str(state.model_checkpoint_path)


def update_checkpoint_state(
    directory: str | os.PathLike[str],
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] = (),
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the state file of a directory; paths below the directory are written as relative ones.

    Args:
        directory: The directory.
        model_checkpoint_path: The prefix of the latest checkpoint.
        all_model_checkpoint_paths: The prefixes of all, the oldest first; the latest alone if there are none.
        latest_filename: The name of the file; `checkpoint` if there is none.
        all_model_checkpoint_timestamps: When each was saved, in seconds since 1970.
        last_preserved_timestamp: When the last one was saved that is kept for ever.

    Raises:
        InvalidArgumentError: there are more or fewer times than checkpoints, or a prefix is no path in UTF-8.
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    from google.protobuf import text_format  # slow to import

    folder = os.fspath(directory)
    paths = [*(all_model_checkpoint_paths or ())]
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise InvalidArgumentError(
            f"{len(paths)} checkpoints have {len(all_model_checkpoint_timestamps)} times"
        )
    state = CheckpointState(
        model_checkpoint_path=_relative(model_checkpoint_path, folder),
        all_model_checkpoint_paths=[_relative(path, folder) for path in paths],
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps,
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )
    text = text_format.MessageToString(state, as_utf8=True)
    write_whole(os.path.join(folder, latest_filename or STATE_FILE), text.encode())


def checked_prefix(prefix: str | os.PathLike[str]) -> str:
    """A prefix as text, which the state file of its directory can name.

    Raises:
        InvalidArgumentError: no file can have that prefix, or it is not in UTF-8.
    """
    path = checked_path(prefix)
    _in_utf8(os.path.basename(path))
    return path


def _relative(path: str, folder: str) -> str:
    """A path as it is from a directory, if it is below it."""
    if os.path.isabs(checked_path(path)) != os.path.isabs(folder):
        return _in_utf8(os.path.abspath(path))
    found = os.path.relpath(path, folder)
    return _in_utf8(os.path.abspath(path) if found.startswith(os.pardir) else found)


def _in_utf8(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"The file {STATE_FILE!r} cannot name the checkpoint {path!r}: its name must be in UTF-8"
        ) from error
    return path


@entrances
class CheckpointManager:
    """Keeps the latest checkpoints of a directory: numbers them, deletes the oldest, and writes `checkpoint`.

        manager = opkernel.CheckpointManager("training", max_to_keep=3)
        manager.save(checkpoint.write)
        manager.latest_checkpoint

    The manager deletes only checkpoints in its directory whose names are `checkpoint_name` and a number. Others that
    the file `checkpoint` names leave the list when they are too many, and stay on the disk.

    Args:
        directory: The directory; it is made if it is missing.
        max_to_keep: How many are kept; None for all.
        keep_checkpoint_every_n_hours: One checkpoint every so many hours is never deleted; None or 0 for none.
        checkpoint_name: What the names begin with: NAME-1, NAME-2.

    Raises:
        InvalidArgumentError: `max_to_keep` is below 1, `directory` is no path, or `checkpoint_name` is empty or
            leads out of the directory.
        DataLossError: the state file is damaged.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        max_to_keep: int | None = 5,
        *,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise InvalidArgumentError(f"max_to_keep is {max_to_keep}: keep at least one, or None")
        self._directory = checked_path(directory)
        self._max_to_keep = max_to_keep
        hours = keep_checkpoint_every_n_hours
        self._every_s = None if hours is None else _HOUR_S * hours
        self._prefix = os.path.join(self._directory, _checked_name(checkpoint_name))
        self._saved_at: dict[str, float] = {}
        self._last_preserved = time.time()
        self._recover()

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are kept for now, the oldest first."""
        return [*self._saved_at]

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the latest checkpoint; None if there is none."""
        return next(reversed(self._saved_at), None)

    def save(self, write: Callable[[str], object], checkpoint_number: int | None = None) -> str:
        """Save a checkpoint, and delete those that are too many.

        Args:
            write: Writes a checkpoint with exactly the prefix that it gets, as `Checkpoint.write` does.
            checkpoint_number: Its number; one more than the latest has if there is none.

        Returns:
            The prefix.

        Raises:
            InvalidArgumentError: `write` wrote no checkpoint of that prefix.
            NotFoundError, PermissionDeniedError, UnavailableError: a file cannot be written.
        """
        number = self._next_number() if checkpoint_number is None else checkpoint_number
        prefix = f"{self._prefix}-{number}"
        make_directory(os.path.dirname(prefix))
        write(prefix)
        if not checkpoint_exists(prefix):
            if self._saved_at:  # which the function may have taken out of the state file
                self._write_state()
            raise InvalidArgumentError(
                f"The function that CheckpointManager.save got wrote no checkpoint {prefix}. It must write exactly the "
                f"prefix that it gets: pass `checkpoint.write`, and not `checkpoint.save`, which adds another number"
            )
        self._saved_at.pop(prefix, None)
        self._saved_at[prefix] = time.time()
        going = self._superfluous()
        self._write_state()
        for one in going:
            _delete(one)
        return prefix

    def _next_number(self) -> int:
        match = re.search(r"-([0-9]+)$", self.latest_checkpoint or "")
        return int(match[1]) + 1 if match else 1

    def _recover(self) -> None:
        """Take over what the state file of the directory says."""
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        times = state.all_model_checkpoint_timestamps
        paths = state.all_model_checkpoint_paths
        saved_at = times if len(times) == len(paths) else [time.time()] * len(paths)
        self._saved_at = {
            self._own(path) or path: at
            for path, at in zip(paths, saved_at, strict=True)
            if checkpoint_exists(path)
        }
        self._last_preserved = state.last_preserved_timestamp or self._last_preserved

    def _own(self, prefix: str) -> str | None:
        """The prefix of a checkpoint of this manager as `save` spells it; None for other checkpoints."""
        folder, name = os.path.split(prefix)
        own_folder, own_name = os.path.split(self._prefix)
        if not re.fullmatch(rf"{re.escape(own_name)}-?-[0-9]+", name):
            return None
        is_here = os.path.realpath(folder) == os.path.realpath(own_folder)
        return os.path.join(own_folder, name) if is_here else None

    def _superfluous(self) -> list[str]:
        """The checkpoints to be deleted, which are no longer among those that are kept."""
        going = []
        while self._max_to_keep is not None and len(self._saved_at) > self._max_to_keep:
            prefix = next(iter(self._saved_at))
            saved_at = self._saved_at.pop(prefix)
            if self._every_s and saved_at - self._every_s >= self._last_preserved:
                self._last_preserved = saved_at
            elif self._own(prefix) is not None:
                going.append(prefix)
        return going

    def _write_state(self) -> None:
        update_checkpoint_state(
            self._directory,
            str(self.latest_checkpoint),
            self.checkpoints,
            None,
            [*self._saved_at.values()],
            self._last_preserved,
        )


def _checked_name(name: str) -> str:
    """The name that checkpoints of a directory begin with."""
    parts = checked_prefix(name).replace(os.sep, "/").split("/")
    if os.path.isabs(name) or os.pardir in parts or not parts[-1]:
        raise InvalidArgumentError(
            f"checkpoint_name is {name!r}: it must be the name of files in the directory"
        )
    return name


def _delete(prefix: str) -> None:
    """Delete the files of a checkpoint, the index first: without it the others are nothing."""
    for path in [*_files(prefix)]:
        with suppress(OSError):
            os.unlink(path)


def _files(prefix: str) -> Iterable[str]:
    """The files of a checkpoint; those that only have such a name are none of it."""
    folder, name = os.path.split(prefix)
    shard = r"-[0-9]{5}-of-[0-9]{5}"
    if is_table(index_file(prefix)):
        yield index_file(prefix)
        data = re.compile(rf"{re.escape(name)}\.data{shard}")
        yield from (
            os.path.join(folder, one) for one in sorted(os.listdir(folder)) if data.fullmatch(one)
        )
    yield from filter(is_table, files_of_v1(prefix))
