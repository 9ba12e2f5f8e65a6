"""Registrations: what modules register by name, where they do it, and what may take the place of what.

A module may run again while the things that it registered are still there. Python forgets a module whose import
was interrupted, by Ctrl-C say, and imports it again at the next request. A notebook runs a cell again. So the place that
registered something may register it again, in another run. Nobody else may.
"""

import atexit
import importlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from opkernel.errors import AlreadyExistsError
from opkernel.logs import logger
from opkernel.slots import Slot
from opkernel.tracebacks import past_entrances

_T = TypeVar("_T")


class Plugins(Protocol):
    """Kernel libraries, which register what they have when they are imported."""

    def load_plugins(self) -> object:
        """Load the libraries that are installed, if that was not done yet."""

    def names_of_broken_plugins(self) -> list[str]:
        """The names of those that were tried and could not be loaded."""


PLUGINS: Slot[Plugins] = Slot("plugins")


def load_plugins() -> None:
    """Load the kernel libraries that are installed: one of them may have what nobody registered so far."""
    PLUGINS.get().load_plugins()


class DeclaringSite(NamedTuple):
    """A place in a module that registers something.

    Attributes:
        owner: The module's name.
        file: Its file.
        line: The line.
        name: The qualified name of the code that ran there.
        run: That code: of the module while it is imported, of a notebook's cell, or of the function that was
            called later. Code that is loaded or executed again is compiled anew.
    """

    owner: str
    file: str
    line: int
    name: str
    run: weakref.ref[CodeType]

    def is_of_same_run(self, other: "DeclaringSite") -> bool:
        """Whether one run of the module's code comes to both places."""
        run = self.run()
        return run is not None and run is other.run()

    def is_again(self, other: "DeclaringSite") -> bool:
        """Whether this is the other place in another run of its code."""
        same = (self.owner, self.name) == (other.owner, other.name)
        return same and not self.is_of_same_run(other)


class Registrations(Generic[_T]):
    """Things by name, each with the place that registered it. Safe under threads.

    An interrupt leaves a registration done or not begun.

    Args:
        what: The kind of things, for messages: "An engine".
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._entries: dict[str, tuple[_T, DeclaringSite]] = {}
        _all.add(self)

    def add(self, name: str, thing: _T, site: DeclaringSite) -> None:
        """Register a thing, in place of one that an earlier run of the same place has registered.

        Raises:
            AlreadyExistsError: something else has this name.
        """
        entry = thing, site
        known = self._entries.setdefault(name, entry)
        if known[0] is thing:
            return
        if not site.is_again(known[1]):
            raise AlreadyExistsError(f"{self._what} {name!r} is registered already")
        self._entries[name] = entry

    def put(self, name: str, thing: _T, site: DeclaringSite) -> None:
        """Register a thing in place of whatever has the name."""
        self._entries[name] = thing, site

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> _T:
        return self._entries[name][0]

    def get(self, name: str) -> _T | None:
        """The thing of a name; None where nothing has it."""
        entry = self._entries.get(name)
        return None if entry is None else entry[0]

    def site(self, name: str) -> DeclaringSite | None:
        """The place that registered the thing of a name; None where nothing has it."""
        entry = self._entries.get(name)
        return None if entry is None else entry[1]

    def remove(self, name: str) -> None:
        """Forget the thing of a name, if there is one."""
        self._entries.pop(name, None)

    def names(self) -> list[str]:
        """All names, in order."""
        return sorted(self._entries)

    def sites(self) -> dict[str, DeclaringSite]:
        """The places that registered, by name."""
        return {name: site for name, (_, site) in list(self._entries.items())}

    def things(self) -> list[_T]:
        """All things, in the order in which their names were first registered."""
        return [thing for thing, _ in list(self._entries.values())]


class OpRules(Registrations[_T]):
    """The rules of one kind about ops, by the op: gradients, what XLA compiles, what OpenVINO builds.

    Args:
        kind: What messages call the kind: "XLA".
        load: Imports what registers the rule of an op. It is called once for each op that is asked for.
        missing: What to say of an op without a rule; `{kind}` and `{op}` stand for their names.
    """

    def __init__(
        self,
        kind: str,
        load: Callable[[str], object],
        missing: str = "no {kind} rule for {op}",
    ) -> None:
        super().__init__(f"The {kind} rule of")
        self._kind, self._load, self._missing = kind, load, missing
        self._asked: set[str] = set()

    def find(self, op: str) -> _T | None:
        """The rule of an op, which is loaded where it must be; None where there is none."""
        if op not in self._asked:
            self._load(op)
            self._asked.add(op)
        return self.get(op)

    def missing(self, op: str) -> str:
        """What to say of an op without a rule: "no XLA rule for Where"."""
        return self._missing.format(kind=self._kind, op=op)


def import_modules(package: ModuleType) -> None:
    """Import the modules of a package, which register what they have."""
    import pkgutil  # most processes list no package

    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


_all = weakref.WeakSet[Registrations[Any]]()


def registered_by(is_owner: Callable[[str], bool]) -> Iterator[tuple[Registrations[Any], str]]:
    """What modules have registered, in any Registrations: where, and by which name."""
    for registrations in list(_all):
        for name, site in registrations.sites().items():
            if is_owner(site.owner):
                yield registrations, name


def warn_of_second(
    what: str, site: DeclaringSite, earlier: DeclaringSite, *, is_other: bool = False
) -> None:
    """Warn where one run of a module's code registers a thing twice, of which the last counts.

    A place that registers the same again, as a loop does, is no fault unless it registers another thing.
    """
    if (is_other or site.line != earlier.line) and site.is_of_same_run(earlier):
        logger("opkernel").warning(
            "%s is registered at %s:%s, and was at %s:%s: the last one counts",
            *(what, site.file, site.line, earlier.file, earlier.line),
        )


_lists_at_exit: list[Callable[[], Iterable[str]]] = []


def warn_at_exit(sentences: Callable[[], Iterable[str]]) -> None:
    """Log sentences as warnings when the process ends; what gives them is asked once, then."""
    if not _lists_at_exit:
        atexit.register(_warn)
    if sentences not in _lists_at_exit:
        _lists_at_exit.append(sentences)


def _warn() -> None:
    for sentences in _lists_at_exit:
        for sentence in sentences():
            logger("opkernel").warning("%s", sentence)


def declaring_site(caller: FrameType) -> DeclaringSite:
    """The place in the module that is being imported, or else the caller's.

    A module may declare a family of its ops or kernels through a function of another module. A module
    that declares for others alone says so: `__declares_for_its_caller__`.
    """
    caller = past_entrances(caller)
    while "__declares_for_its_caller__" in caller.f_globals and caller.f_back is not None:
        caller = past_entrances(caller.f_back)
    frame = _importing(caller) or caller
    run = _outermost(frame).f_code
    return DeclaringSite(
        str(frame.f_globals.get("__name__", "")),
        frame.f_code.co_filename,
        frame.f_lineno,
        run.co_qualname,
        weakref.ref(run),
    )


def _importing(caller: FrameType) -> FrameType | None:
    """The frame of the module that is being imported, if any."""
    frame: FrameType | None = caller
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            spec = frame.f_globals.get("__spec__")
            if getattr(spec, "_initializing", False):
                return frame
        frame = frame.f_back
    return None


def _outermost(frame: FrameType) -> FrameType:
    """The frame through which the module of a frame is run or was called."""
    found, above = frame, frame.f_back
    while found.f_code.co_name != "<module>" and above is not None:
        if above.f_globals is frame.f_globals:
            found = above
        above = above.f_back
    return found
