"""The models of a directory: by name and version, as they lie there at the moment.

Source: TensorFlow Serving sources/storage_path/file_system_storage_path_source.cc.
"""

from __future__ import annotations

from pathlib import Path

from opkernel.errors import NotFoundError

_FILES = ("saved_model.pb", "saved_model.pbtxt")
_ONLY_VERSION = 1
Versions = dict[int, Path]


def found_models(directory: Path, name: str = "") -> dict[str, Versions]:
    """The versions of each model of a directory.

    The directory is a SavedModel, or has versions of one (`DIR/1/saved_model.pb`), or has directories
    of such versions, one for each model.

    Args:
        directory: The directory.
        name: What a model is called that the directory itself is; by default as the directory.

    Raises:
        NotFoundError: there is no such directory.
    """
    if not directory.is_dir():
        raise NotFoundError(f"{directory} is no directory")
    own_name = name or directory.resolve().name
    if _is_model(directory):
        return {own_name: {_ONLY_VERSION: directory}}
    versions = _versions(directory)
    if versions:
        return {own_name: versions}
    found = {one.name: _versions(one) for one in _directories(directory)}
    return {name: versions for name, versions in found.items() if versions}


def chosen_versions(versions: Versions, policy: str) -> Versions:
    """The versions to serve: the newest (`latest`), all, or those that are listed: `1,3`."""
    if policy == "all" or not versions:
        return versions
    if policy == "latest":
        newest = max(versions)
        return {newest: versions[newest]}
    wanted = {int(number) for number in policy.split(",")}
    return {number: path for number, path in versions.items() if number in wanted}


def stamp(path: Path) -> tuple[object, ...]:
    """What changes with the files of a model: their names, sizes and times."""
    found = []
    for file in sorted(path.rglob("*")):
        try:
            facts = file.stat()
        except OSError:
            continue  # it has gone meanwhile
        found.append((str(file), facts.st_size, facts.st_mtime_ns))
    return tuple(found)


def _is_model(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _FILES)


def _versions(directory: Path) -> Versions:
    return {
        int(one.name): one
        for one in _directories(directory)
        if one.name.isascii() and one.name.isdigit() and len(one.name) < 19 and _is_model(one)
    }


def _directories(directory: Path) -> list[Path]:
    try:
        return sorted(one for one in directory.iterdir() if one.is_dir())
    except OSError:
        return []  # it has gone meanwhile
