"""`OpRegistry`: the registered ops.

An op comes in by one of two doors:

- `register` takes a factory, as in TensorFlow. Factories given before the first look-up are
  deferred: they run together at the first look-up, export or `process_registrations`.
- `declare` takes a declaration that already has a name (`register_op` uses it). It is built and
  checked at once. One by the module that the loader would import for the op is built when the op is
  first looked up, so that importing a module with a hundred ops is cheap.

Looking up any other op asks the loader. The loader may import the module that declares the op, or
give the data of an op that no module registers. Such an op gives way to a registration of its name
at any time.

Every public method may be called from any thread. The lock is not held while the loader runs:
it imports modules, and a module that another thread imports may be waiting to register its ops.

Source: TensorFlow core/framework/op.cc.
"""

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from opkernel.errors import AlreadyExistsError, OpError
from opkernel.messages import did_you_mean, short_repr
from opkernel.opdef import text as summaries
from opkernel.opdef.core.op_def_builder import OpDeclaration, OpDefBuilder, OpRegistrationData
from opkernel.opdef.core.op_lookup import (
    CATALOGUE,
    SYSTEM_OPS,
    load_op,
    loadable_ops,
    not_registered,
)
from opkernel.opdef.core.op_traits import NO_TRAITS, OpTraits
from opkernel.opdef.core.validate import validate_op_def
from opkernel.proto import OpDef, OpList
from opkernel.registrations import DeclaringSite, warn_of_second

Factory: TypeAlias = Callable[[], OpRegistrationData]
Loader: TypeAlias = Callable[[str], OpRegistrationData | None]
"""Asked for an op that is missing: it registers the op, or returns it, or does neither."""

OpCheck: TypeAlias = Callable[[OpDef], None]
"""Sees an op that is declared; raises to refuse it."""

Watcher: TypeAlias = Callable[[OpError | None, OpDef], OpError | None]
"""Sees each op that comes in, with the error if it is refused; its result is the outcome."""


class OpRegistry:
    """A set of ops by name; see the module for how ops come in.

    `OpRegistry.global_()` is the one that everything uses unless told otherwise.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._registered: dict[str, OpRegistrationData] = {}
        self._declared: dict[str, OpDeclaration] = {}  # built ones stay, to know their owners
        self._deferred: list[Factory] = []
        self._is_initialized = False  # from the first look-up on nothing is deferred
        self._watcher: Watcher | None = None
        self._validator: Callable[[OpRegistry], None] | None = None
        self._check_of_new: OpCheck | None = None
        self.set_loader(None)

    @staticmethod
    def global_() -> "OpRegistry":
        """The registry of the process."""
        return _GLOBAL

    def register(self, op: OpRegistrationData | OpDefBuilder | Factory) -> None:
        """Register an op, given as it is, as a builder to finalise, or as a factory.

        Raises:
            AlreadyExistsError: there is an op of that name (but for deferred ones, see
                `process_registrations`).
            InvalidArgumentError: the op is no valid declaration (likewise).
        """
        factory = _as_factory(op)
        with self._lock:
            if self._is_initialized:
                self._register_now(factory)
            else:
                self._deferred.append(factory)

    def declare(self, declaration: OpDeclaration) -> None:
        """Register an op, which is built at once unless the loader brings it.

        A declaration by the owner of the one before replaces it.

        Raises:
            AlreadyExistsError: the op is registered, and not by this owner.
            InvalidArgumentError: the op is no valid declaration. An earlier registration stays.
        """
        name = declaration.name
        with self._lock:
            if name not in self._declared and name in self._registered:
                raise AlreadyExistsError(f"Op with name {name}")
            loaded_from = self._owner_to_load(name)
            before = self.owner(name) or loaded_from
            if before not in (None, declaration.owner):
                raise AlreadyExistsError(
                    f"Op with name {name}: '{declaration.owner}' declares it, but '{before}' "
                    "declares it already; choose another name"
                )
            earlier = self._declared.get(name)
            registered = self._registered.pop(name, None)
            self._declared[name] = declaration
            if declaration.owner != loaded_from:
                self._build_at_once(declaration, earlier, registered)
            if earlier is not None:
                now = self._registered.get(name)
                is_other = bool(now and registered and now.op_def != registered.op_def)
                warn_of_second(f"Op {name}", declaration.site, earlier.site, is_other=is_other)

    def _build_at_once(
        self,
        declaration: OpDeclaration,
        declared: OpDeclaration | None,
        registered: OpRegistrationData | None,
    ) -> None:
        """Build and check a declaration, or put back the earlier state; the lock is held."""
        name, is_kept = declaration.name, False
        try:
            self._register_now(declaration.build, is_declared=True)
            now = self._registered.get(name)  # None where the watcher has taken the error
            if now is not None and declared is None and self._check_of_new is not None:
                self._check_of_new(now.op_def)
            is_kept = now is not None
        finally:
            if not is_kept:
                del self._declared[name]
                self._registered.pop(name, None)
                if declared is not None:
                    self._declared[name] = declared
                if registered is not None:
                    self._registered[name] = registered

    def owner(self, name: str) -> str | None:
        """The module that declares an op; None for ops that came as data, and unknown ones."""
        declaration = self._declared.get(name)
        return None if declaration is None else declaration.owner

    def site(self, name: str) -> tuple[str, int] | None:
        """The file and line at which an op is declared; None for ops that came as data."""
        declaration = self._declared.get(name)
        return None if declaration is None else (declaration.site.file, declaration.site.line)

    def traits(self, name: str) -> OpTraits:
        """The traits of an op, none for an unknown one; loads and builds nothing."""
        with self._lock:
            self._process_deferred()
            known = self._declared.get(name) or self._registered.get(name)
        return self._traits_to_load(name) if known is None else known.traits

    def may_open_files(self, name: str) -> bool:
        """Whether kernels of an op may open files, or run Python: its traits say so, or the catalogue lacks the op.

        Loads and builds nothing.
        """
        traits = self.traits(name)
        asks = traits.reads_files or traits.writes_files or traits.runs_python
        return asks or self._owner_to_load(name) is None

    def owners(self) -> dict[str, str]:
        """The modules that declare ops, by op; ops that came as data have none."""
        with self._lock:
            return {name: declaration.owner for name, declaration in self._declared.items()}

    def unregister(self, name: str) -> None:
        """Forget an op.

        Raises:
            NotFoundError: it is not registered.
        """
        with self._lock:
            if name not in self._registered and name not in self._declared:
                raise not_registered(name)
            self._registered.pop(name, None)
            self._declared.pop(name, None)

    def look_up(self, name: str) -> OpRegistrationData:
        """The op of that name; loads the module that declares it where the loader knows one.

        Raises:
            NotFoundError: there is no such op.
            OpError: a deferred registration failed, or the validator refuses the registry.
        """
        found = self._loaded(name)
        if found is None:
            raise not_registered(name)
        return found

    def knows(self, name: str) -> bool:
        """Whether there is an op of that name; loads the module that declares it, as `look_up` does."""
        return self._loaded(name) is not None

    def look_up_op_def(self, name: str) -> OpDef:
        """The declaration of the op of that name; raises as `look_up` does."""
        return self.look_up(name).op_def

    def has(self, name: str) -> bool:
        """Whether an op of that name is registered already; loads nothing."""
        return self._find(name) is not None

    def is_there(self, name: str) -> bool:
        """Whether an op of that name is registered already, or the loader or the catalogue brings it; loads no module."""
        is_found = self._owner_to_load(name) is not None or self.has(name)
        return is_found or name in CATALOGUE.get().all_op_names()

    def note_on_missing(self, what: str, name: str, site: DeclaringSite) -> str:
        """A sentence on a kernel or gradient that was registered for an op that is not there; loads nothing."""
        hint = did_you_mean(name, {*self.owners(), *CATALOGUE.get().all_op_names()})
        place = f"{site.file}:{site.line}"
        return (
            f"{what} of {short_repr(name)} is registered at {place}, and there is no such op{hint}"
        )

    def names(self) -> list[str]:
        """The names of all ops in order; builds none."""
        loadable = self._loadable()
        with self._lock:
            self._process_deferred()
            return sorted({*self._registered, *self._declared, *loadable})

    def export(self, include_internal: bool = False) -> OpList:
        """All ops by name; internal ops, which begin with `_`, only if `include_internal`."""
        ops = self.get_registered_ops()
        return OpList(op=[op for op in ops if include_internal or not op.name.startswith("_")])

    def get_registered_ops(self) -> list[OpDef]:
        """The declarations of all ops, by name."""
        return [data.op_def for data in self.get_op_registration_data()]

    def get_op_registration_data(self) -> list[OpRegistrationData]:
        """All ops by name: the registered ones and the ones that the loader knows."""
        loaded = {name: self.look_up(name) for name in self._loadable()}
        with self._lock:
            self.process_registrations()
            known = {**loaded, **self._registered}
            return [known[name] for name in sorted(known)]

    def debug_string(self, include_internal: bool = False) -> str:
        """The summaries of the ops that `export` gives, one a line."""
        return "".join(
            f"{summaries.summarize_op_def(op)}\n" for op in self.export(include_internal).op
        )

    def select(self, names: Iterable[str]) -> "OpRegistry":
        """A registry of these ops and of the system's: all that a list of graphs needs, say.

        The system's ops are registered with `system=True`.

        Raises:
            NotFoundError: one of them is not registered.
            TypeError: a string stands where a list of names is wanted.
        """
        if isinstance(names, str):
            raise TypeError(f"names is a list of ops, not the string {names!r}")
        with self._lock:
            self._process_deferred()
            system = {name for name, op in self._registered.items() if op.is_system}
            system.update(name for name, op in self._declared.items() if op.is_system)
        selected = OpRegistry()
        for name in sorted({*names, *SYSTEM_OPS, *system}):
            selected.register(self.look_up(name))
        return selected

    def process_registrations(self) -> None:
        """Run deferred factories and build declared ops.

        Raises:
            OpError: an op is invalid or a name comes twice, and the watcher did not swallow it.
                The deferred registrations after that one are dropped.
        """
        with self._lock:
            self._process_deferred()
            for name in list(self._declared):
                self._find_or_build(name)

    def defer_registrations(self) -> None:
        """Defer registrations from now on, until the next look-up or `process_registrations`."""
        with self._lock:
            self._is_initialized = False

    def clear_deferred_registrations(self) -> None:
        """Forget the factories that wait."""
        with self._lock:
            self._deferred.clear()

    def set_watcher(self, watcher: Watcher | None) -> None:
        """Have each op shown to `watcher` as it comes in; None removes it.

        The watcher gets the error, or None, and the OpDef. It returns the error to raise, or None. An
        op that it returns an error for is not registered; an op with an error is not registered in any case.
        An op whose specs are wrong comes with its name only.

        Raises:
            AlreadyExistsError: there is a watcher already.
        """
        with self._lock:
            if self._watcher and watcher:
                raise AlreadyExistsError("Cannot over-write a valid watcher with another.")
            self._watcher = watcher

    def register_validator(self, validator: "Callable[[OpRegistry], None]") -> None:
        """Have `validator` check the registry at the first look-up; it raises to refuse it."""
        self._validator = validator

    def register_check_of_new_ops(self, check: OpCheck) -> None:
        """Have `check` see each op that is declared for the first time and built at once.

        It raises to refuse the op.
        """
        self._check_of_new = check

    def is_brought(self, name: str, owner: str) -> bool:
        """Whether the loader brings an op, and `owner` is a module of the package that it comes from.

        Kernels and ops of such modules have been tested with them, and are checked when they are looked up.
        """
        module = self._owner_to_load(name)
        return module is not None and module.partition(".")[0] == owner.partition(".")[0]

    def set_loader(
        self,
        loader: Loader | None,
        names: Callable[[], Iterable[str]] = tuple,
        owner: Callable[[str], str | None] = lambda name: None,
        traits: Callable[[str], OpTraits] = lambda name: NO_TRAITS,
    ) -> None:
        """Set the loader, which is called with the name of an op that is looked up and not registered.

        `names` gives the ops that the loader knows, for listing all ops. `owner` tells, without loading
        anything, the module that the loader would have register an op; no other module may register it.
        `traits` tells the op's traits, likewise.
        """
        self._loader = loader
        self._loadable = names
        self._owner_to_load = owner
        self._traits_to_load = traits

    def _loaded(self, name: str) -> OpRegistrationData | None:
        found = self._registered.get(name) if self._is_initialized else None
        found = found or self._find(name)
        if found is None and self._loader is not None:
            known = self._loader(name)
            found = self._find(name) or known
        return found

    def _find(self, name: str) -> OpRegistrationData | None:
        """The op if it is registered, without asking the loader."""
        with self._lock:
            is_first_call = self._process_deferred()
            found = self._find_or_build(name)
        if is_first_call and self._validator is not None:
            self._validator(self)
        return found

    def _find_or_build(self, name: str) -> OpRegistrationData | None:
        """The op if it is registered; the lock is held."""
        if name not in self._registered and name in self._declared:
            self._register_now(self._declared[name].build, is_declared=True)
        return self._registered.get(name)

    def _process_deferred(self) -> bool:
        """Run the deferred factories; the result is whether this was still to be done."""
        if self._is_initialized:
            return False
        try:
            self._is_initialized = True
            self._register_deferred()
        except OpError:
            self._deferred.clear()
            raise
        except BaseException:  # an interrupt: the next look-up goes on with it
            self._is_initialized = False
            raise
        return True

    def _register_deferred(self) -> None:
        """Its own function: in Python 3.12 and 3.13 an interrupt as a loop turns is not seen by the `try` around it."""
        while self._deferred:
            self._register_now(self._deferred[0])
            del self._deferred[0]

    def _register_now(self, factory: Factory, *, is_declared: bool = False) -> None:
        """Build and check an op and show it to the watcher; the lock is held."""
        data = OpRegistrationData(OpDef())
        error: OpError | None = None
        try:
            data = factory()
            validate_op_def(data.op_def)
            name = data.op_def.name
            if name in self._registered or (name in self._declared and not is_declared):
                raise AlreadyExistsError(f"Op with name {name}")
        except OpError as raised:
            error = raised
            if not data.op_def.name and raised.op:
                data.op_def.name = raised.op  # watchers know the op, even if its specs are wrong
        outcome = self._watcher(error, data.op_def) if self._watcher else error
        if error is None and outcome is None:
            self._registered[data.op_def.name] = data
        if outcome is not None:
            raise outcome


def _as_factory(op: OpRegistrationData | OpDefBuilder | Factory) -> Factory:
    if isinstance(op, OpRegistrationData):
        return lambda: op
    return op.finalize if isinstance(op, OpDefBuilder) else op


_GLOBAL = OpRegistry()
_GLOBAL.set_loader(
    load_op,
    names=loadable_ops,
    owner=lambda name: CATALOGUE.get().module_of_op(name),
    traits=lambda name: CATALOGUE.get().traits_of_op(name),
)


def global_op_registry() -> OpRegistry:
    """The registry of the process; `register_op` puts ops there unless told otherwise."""
    return _GLOBAL


def get_registered_ops() -> dict[str, OpDef]:
    """The declarations of all ops that the global registry knows, by name (op_def_registry.py)."""
    return {op.name: op for op in _GLOBAL.get_registered_ops()}
