"""Looking up ops by name: what answers, the catalogue behind it, and the error for a name that no op has."""

from collections.abc import Iterable
from typing import Protocol

from opkernel.errors import NotFoundError
from opkernel.messages import did_you_mean
from opkernel.opdef.core.op_def_builder import OpRegistrationData
from opkernel.opdef.core.op_traits import OpTraits
from opkernel.proto import OpDef, OpList
from opkernel.registrations import PLUGINS, load_plugins
from opkernel.slots import Slot

SYSTEM_OPS = frozenset(
    {"NoOp", "_Arg", "_ArrayToList", "_DeviceArg", "_DeviceRetval", "_ListToArray", "_Recv"}
    | {"_Retval", "_Send"}
)
"""Ops that the runtime puts into graphs by itself: the catalogue's ops with `system=True`."""


class OpRegistryInterface(Protocol):
    """Finds ops by name: a registry, or the functions of a library on top of one."""

    def look_up(self, name: str) -> OpRegistrationData:
        """The op of that name, or NotFoundError."""

    def look_up_op_def(self, name: str) -> OpDef:
        """The declaration of the op of that name, or NotFoundError."""


class OpCatalogue(Protocol):
    """The ops that come with opkernel, each declared in a module that is imported when it is needed."""

    def load_op(self, name: str) -> OpRegistrationData | None:
        """Import the module that registers an op and its kernels, or give what is known of the op without one."""

    def load_gradient(self, name: str) -> None:
        """Import the module that registers the gradient of an op, if there is one."""

    def module_of_op(self, name: str) -> str | None:
        """The module that registers an op; None for ops without one."""

    def traits_of_op(self, name: str) -> OpTraits:
        """The traits of an op."""

    def all_op_names(self) -> frozenset[str]:
        """The ops that `load_op` knows."""


CATALOGUE: Slot[OpCatalogue] = Slot("catalogue of ops")


def load_op(name: str) -> OpRegistrationData | None:
    """Load an op of the catalogue, or the plugins, which may register an op that the catalogue lacks."""
    catalogue = CATALOGUE.get()
    known = catalogue.load_op(name)
    if known is None and _may_be_of_plugin(name) and catalogue.module_of_op(name) is None:
        load_plugins()
    return known


def _may_be_of_plugin(name: str) -> bool:
    """False of the names that functions have (`while_body_7`, `__inference_call_7`): plugins are slow to look for."""
    return name[:1].isupper() or (name.startswith("_") and not name.startswith("__"))


def loadable_ops() -> Iterable[str]:
    """Load the plugins; the result is the ops of the catalogue."""
    load_plugins()
    return CATALOGUE.get().all_op_names()


class UnregisteredOpError(NotFoundError):
    """An op that is asked for is not registered."""


def not_registered(name: str, registered: Iterable[str] = ()) -> UnregisteredOpError:
    """The error for an op that a registry does not have, with registered ops of similar names."""
    import platform  # slow to import, and needed here alone

    return UnregisteredOpError(
        f"Op type not registered '{name}' in binary running on {platform.node()}"
        f"{did_you_mean(name, registered)}. Make sure the "
        "Op and Kernel are registered in the binary running in this process: import the module "
        f"that registers them first, or install a plugin that has them.{_broken_plugins()}"
    )


def _broken_plugins() -> str:
    """A sentence on the plugins that could not be loaded: one of them may be what is missing."""
    plugins = PLUGINS.if_loaded()
    names = plugins.names_of_broken_plugins() if plugins else []
    if not names:
        return ""
    told = ", ".join(map(repr, names))
    return f" Not loaded, and perhaps what has them: plugin {told} (`opkernel doctor` says why)."


class OpListOpRegistry:
    """The ops of an OpList, read-only: for graphs that bring their ops along."""

    def __init__(self, op_list: OpList) -> None:
        self._ops = {op.name: OpRegistrationData(op) for op in op_list.op}

    def look_up(self, name: str) -> OpRegistrationData:
        """The op of that name; the first of several.

        Raises:
            NotFoundError: the list has no such op.
        """
        found = self._ops.get(name)
        if found is None:
            raise not_registered(name)
        return found

    def look_up_op_def(self, name: str) -> OpDef:
        """The declaration of the op of that name; raises as `look_up` does."""
        return self.look_up(name).op_def
