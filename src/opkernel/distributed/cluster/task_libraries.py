"""Task libraries: the Python files and folders with ops and kernels that a cluster brings to its tasks.

Ray's runtime environments upload files of this machine for a whole job alone, and not for the actors of one
that runs. So the files travel with the actors.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from opkernel.errors import NotFoundError
from opkernel.records import dataclass


@dataclass(frozen=True)
class TaskLibrary:
    """A module, and its files where tasks cannot find it by its name.

    Attributes:
        module: Its name.
        files: The content of its files, by path.
    """

    module: str
    files: dict[str, bytes]

    def load(self) -> None:
        """Import it; raises what it raises."""
        if self.files:
            root = Path(tempfile.mkdtemp(prefix="opkernel-library-"))
            for name, content in self.files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            sys.path.insert(0, str(root))
        importlib.import_module(self.module)


def task_libraries(libraries: Sequence[str | Path]) -> list[TaskLibrary]:
    """The libraries of names of modules, Python files and folders that are packages.

    Raises:
        NotFoundError: there is no such file or folder.
    """
    return [_library(library) for library in libraries]


def _library(library: str | Path) -> TaskLibrary:
    path = Path(library)
    if path.is_dir():
        files = [one for one in sorted(path.rglob("*")) if one.is_file() and one.suffix != ".pyc"]
        return TaskLibrary(
            path.resolve().name,
            {str(one.relative_to(path.parent)): one.read_bytes() for one in files},
        )
    if path.suffix == ".py" or isinstance(library, Path):
        if not path.is_file():
            raise NotFoundError(f"There is no library {library}")
        return TaskLibrary(path.stem, {path.name: path.read_bytes()})
    return TaskLibrary(str(library), {})
