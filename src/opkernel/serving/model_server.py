"""ModelServer: the models of a directory, the versions that serve, and what becomes of others.

`poll` compares the directory, as it is at the moment, with what is served. A new version is loaded while the old one
serves. Then they are swapped, and the old one goes when its last request is done.

Source: TensorFlow Serving core/availability_preserving_policy.cc, sources/storage_path.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from opkernel.errors import Code, InternalError, InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import file_kind
from opkernel.interrupts import contextmanager
from opkernel.logs import logger
from opkernel.records import dataclass
from opkernel.serving.servable import Servable, ServingOptions

_ONLY_VERSION = 1
Versions = dict[int, Path]


def found_models(directory: Path, name: str = "") -> dict[str, Versions]:
    """The versions of each model of a directory.

    The directory is a SavedModel or a TensorFlow.js graph model, or has versions of one (`DIR/1/saved_model.pb`), or has directories
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


def without_versions(directory: Path, found: dict[str, Versions]) -> str:
    """Which models of a directory cannot be served because they have no versions, in words; empty for none."""
    if not found:
        return (
            f"{directory} has no models: a model has a directory for each version, with a number as its "
            "name, such as MODEL/1"
        )
    if _is_model(directory) or _versions(directory):
        return ""
    names = [one.name for one in _directories(directory) if one.name not in found]
    listed = ", ".join(names)
    told = (
        f"No versions found of {listed} in {directory}: versions are called by numbers, such as 1"
    )
    return told if names else ""


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
    try:
        return file_kind(directory).may_be_saved
    except OpError:
        return False  # it has gone meanwhile


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


_LOG = "opkernel.serving"


@dataclass(frozen=True)
class VersionStatus:
    """What has become of a version.

    Attributes:
        version: Its number.
        state: `LOADING`, `AVAILABLE` or `END`.
        error: Why it cannot be served.
        stamp: What its files were when it failed.
    """

    version: int
    state: str
    error: OpError | None = None
    stamp: tuple[object, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As TensorFlow Serving tells it."""
        code = Code.OK if self.error is None else self.error.code
        message = "" if self.error is None else self.error.message
        return {
            "version": str(self.version),
            "state": self.state,
            "status": {"error_code": code.name, "error_message": message},
        }


class ModelServer:
    """Models by name and version.

    Args:
        directory: A SavedModel, versions of one, or several models with versions.
        options: How the models are run.
        name: What a model is called that is not in a directory of its name.
        versions: Which are served: `latest`, `all`, or numbers, as `1,3`.

    Attributes:
        observe: Told the name of a model and the rows whenever one runs.
        observe_status: Told the name of a model and what has become of a version, whenever it changes.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        options: ServingOptions | None = None,
        *,
        name: str = "",
        versions: str = "latest",
    ) -> None:
        self.options = options or ServingOptions()
        self._directory = Path(directory)
        self._name = name
        self._policy = versions
        self.observe: Callable[[str, int], None] = lambda name, rows: None
        self.observe_status: Callable[[str, VersionStatus], None] = lambda name, status: None
        self._servables: dict[str, dict[int, Servable]] = {}
        self._statuses: dict[str, dict[int, VersionStatus]] = {}
        self._polling = threading.Lock()
        self._missing = ""

    def poll(self) -> None:
        """Serve what the directory has now.

        Raises:
            NotFoundError: the directory is not there; what is served stays.
        """
        with self._polling:
            found = found_models(self._directory, self._name)
            missing = without_versions(self._directory, found)
            if missing and missing != self._missing:
                logger(_LOG).warning("%s", missing)
            self._missing = missing
            for name in {*found, *self._servables}:
                self._update(name, chosen_versions(found.get(name, {}), self._policy))

    def close(self) -> None:
        """Let all models go when their requests are done."""
        with self._polling:
            for name in [*self._servables]:
                self._update(name, {})

    def versions(self, name: str) -> list[int]:
        """The versions of a model that answer."""
        return sorted(self._servables.get(name, {}))

    @property
    def names(self) -> list[str]:
        """The models that have a version, or had one."""
        return sorted(self._statuses)

    def statuses(self, name: str, version: int | None = None) -> list[VersionStatus]:
        """What has become of the versions of a model, or of one; the newest first.

        Raises:
            NotFoundError: there is no such model or version.
        """
        of_model = self._statuses.get(name, {})
        found = [one for number, one in of_model.items() if version in (None, number)]
        if not found:
            of_version = "" if version is None else f" with version {version}"
            raise NotFoundError(f"Could not find any versions of model {name}{of_version}")
        return sorted(found, key=lambda one: -one.version)

    def labelled(self, label: str) -> int:
        """The version of a label.

        Raises:
            InvalidArgumentError: there is no such label.
        """
        if label not in self.options.labels:
            raise InvalidArgumentError(f"Unrecognized servable version label: {label}")
        return self.options.labels[label]

    @contextmanager
    def use(self, name: str, version: int | None = None) -> Iterator[Servable]:
        """Within the block a version of a model, by default the newest one, stays loaded.

        Raises:
            NotFoundError: it is not served.
        """
        servable = self._begin_use(name, version)
        try:
            yield servable
        finally:
            servable.end_use()

    def _begin_use(self, name: str, version: int | None) -> Servable:
        while True:
            served = self._servables.get(name, {})
            number = max(served, default=None) if version is None else version
            servable = None if number is None else served.get(number)
            if servable is None:
                asked = f"Latest({name})" if version is None else f"Specific({name}, {version})"
                raise NotFoundError(f"Servable not found for request: {asked}")
            if servable.begin_use():
                return servable
            # It was swapped after the look-up: what serves now is another.

    def _update(self, name: str, wanted: dict[int, Path]) -> None:
        served = self._servables.get(name, {})
        now = {number: served[number] for number in served.keys() & wanted.keys()}
        for number in wanted.keys() - served.keys():
            servable = self._loaded(name, number, wanted[number])
            if servable is not None:
                now[number] = servable
        if wanted and not now:
            now = served  # a version that cannot be loaded takes no other's place
        self._servables[name] = now
        for number in served.keys() - now.keys():
            served[number].retire()
            self._tell(name, VersionStatus(number, "END"))

    def _loaded(self, name: str, number: int, path: Path) -> Servable | None:
        """A version; None where it cannot be loaded, and until its files change."""
        before = self._statuses.get(name, {}).get(number)
        files = stamp(path)
        if before is not None and before.error is not None and before.stamp == files:
            return None
        self._tell(name, VersionStatus(number, "LOADING"))
        try:
            servable = Servable(name, number, path, self.options, lambda n: self.observe(name, n))
        except Exception as error:  # a bad model, in whatever way, ends no other
            told = error if isinstance(error, OpError) else InternalError(str(error))
            logger(_LOG).warning("Model %s version %d cannot be served: %s", name, number, told)
            self._tell(name, VersionStatus(number, "END", told, files))
            return None
        self._tell(name, VersionStatus(number, "AVAILABLE"))
        return servable

    def _tell(self, name: str, status: VersionStatus) -> None:
        self._statuses[name] = {**self._statuses.get(name, {}), status.version: status}
        self.observe_status(name, status)
