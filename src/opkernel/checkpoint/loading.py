"""`load_checkpoint`: the reader of a checkpoint, whichever format and name it has.

Source: TensorFlow python/training/checkpoint_utils.py.
"""

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING

from opkernel.checkpoint.bundle_reader import BundleReader, index_file
from opkernel.errors import NotFoundError
from opkernel.file_errors import checked_path
from opkernel.files import Opener, open_to_read
from opkernel.types import TensorShape

if TYPE_CHECKING:
    from opkernel.checkpoint.checkpoint_reader import CheckpointReader

_OF_SAVED_MODEL = (os.path.join("variables", "variables"), "variables")
"""The prefix of a SavedModel's variables, from its directory and from the folder."""
_FILE_OF_BUNDLE = re.compile(r"(.+)\.(?:index|meta|data-\d{5}-of-\d{5})", re.DOTALL)


def load_checkpoint(
    path: str | os.PathLike[str], *, open_file: Opener = open_to_read
) -> CheckpointReader:
    """A reader of the tensors of a checkpoint.

        with opkernel.load_checkpoint("model.ckpt-100") as checkpoint:
            kernel = checkpoint.get("dense/kernel")

    Args:
        path: The prefix of a checkpoint, or one of its files; a directory with a `checkpoint` file, whose
            latest checkpoint is taken; the directory of a SavedModel, or its folder `variables`.
        open_file: Opens each file of the checkpoint; gives its descriptor.

    Raises:
        NotFoundError: there is no checkpoint.
        InvalidArgumentError: the path cannot be that of a file.
        DataLossError: the checkpoint is damaged.
        UnimplementedError: a newer TensorFlow wrote it.
    """
    name = checked_path(path)
    if os.path.isdir(name) and not os.path.exists(index_file(name)):
        name = _latest(name)
    if os.path.exists(index_file(name)):
        return BundleReader(name, open_file)
    match = _FILE_OF_BUNDLE.fullmatch(name)
    if match is not None and os.path.exists(index_file(match[1])):
        return BundleReader(match[1], open_file)
    files = files_of_v1(name)
    if not files:
        raise NotFoundError(
            f"There is no checkpoint {name}: neither {index_file(name)} nor a file {name}"
        )
    from opkernel.checkpoint.slices import SlicesReader  # most checkpoints are of V2

    return SlicesReader(name, files, open_file)


def checkpoint_exists(prefix: str) -> bool:
    """Whether there is a checkpoint of a prefix, of V1 or V2."""
    return os.path.exists(index_file(prefix)) or bool(files_of_v1(prefix))


def list_variables(path: str | os.PathLike[str]) -> list[tuple[str, TensorShape]]:
    """The key and shape of each tensor of a checkpoint.

    Raises:
        NotFoundError, InvalidArgumentError, DataLossError, UnimplementedError: as `load_checkpoint`.
    """
    with load_checkpoint(path) as reader:
        return [(key, reader.shape(key)) for key in reader]


def _latest(directory: str) -> str:
    from opkernel.checkpoint.checkpoint_state import latest_checkpoint  # for directories alone

    for prefix in (os.path.join(directory, one) for one in _OF_SAVED_MODEL):
        if os.path.exists(index_file(prefix)):
            return prefix
    found = latest_checkpoint(directory)
    if found is None:
        raise NotFoundError(
            f"{directory} has no file `checkpoint` that names a checkpoint{_those_in(directory)}"
        )
    return found


def _those_in(directory: str) -> str:
    """What a message adds of the checkpoints that lie in a directory."""
    names = sorted([one for one in os.listdir(directory) if one.endswith(".index")])
    if not names:
        return ""
    prefixes = [os.path.join(directory, name.removesuffix(".index")) for name in names[:3]]
    return f"; there {'are' if len(names) > 1 else 'is'} {', '.join(prefixes)}{', ...' * (len(names) > 3)}"


def files_of_v1(name: str) -> list[str]:
    """The files of a checkpoint of format V1."""
    if os.path.isfile(name):
        return [name]
    return sorted(glob.glob(f"{glob.escape(name)}-?????-of-?????"))
