"""The gradient functions of ops, by the op's name.

A gradient function takes an operation and the gradients of its outputs, and gives the gradients of
its inputs, None for those that have none. It is called once for each operation that gradients pass
through, and adds nodes to the operation's graph:

    @register_gradient("Square")
    def square_gradient(op, grad):
        return nodes.Mul(grad, nodes.Mul(2, op.inputs[0]))

Modules of ops register theirs, and therefore importing this module imports nothing of graphs. Large
gradient functions of the catalogue's ops stand in modules of their own, which are imported when one
of their ops is first asked for.

State: `_entries`, filled by the verbs; `_asked`, the ops that the catalogue was asked for.
Source: TensorFlow python/framework/ops.py (RegisterGradient, get_gradient_function).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from opkernel.errors import AlreadyExistsError, NotFoundError
from opkernel.messages import like
from opkernel.opdef import OpHandle, global_op_registry
from opkernel.opdef.core.op_lookup import CATALOGUE
from opkernel.records import dataclass
from opkernel.registrations import DeclaringSite, Registrations, declaring_site, warn_of_second

if TYPE_CHECKING:
    from opkernel.graph import Operation

Gradients: TypeAlias = Any
"""The result of a gradient function: a gradient for each input, or a single one, or None."""

GradientFunction = Callable[..., Gradients]
"""`gradient(op, *grads)`, with the gradient of each output, None where none may be."""

_Function = TypeVar("_Function", bound=GradientFunction)


@dataclass(frozen=True, slots=True)
class _Gradient:
    """The gradient of an op; `function` is None for an op without one."""

    function: GradientFunction | None
    not_derivative: str = ""


_gradients = Registrations[_Gradient]("The gradient of")
_asked: set[str] = set()


def register_gradient(
    *ops: str | OpHandle, not_derivative: str = ""
) -> Callable[[_Function], _Function]:
    """Register the decorated function as the gradient function of ops.

    The module that registered one may register it again, as in a notebook.

    Args:
        ops: the ops, or names that the attr `_gradient_op_type` of nodes may give.
            A name may be registered before its op.
        not_derivative: why the gradient is on purpose not the derivative of the op's function, as
            where gradients pass a rounding unchanged; tests then do not compare the two.

    Raises:
        AlreadyExistsError: another module has registered the op, or the catalogue does.
    """
    site = declaring_site(sys._getframe(1))

    def register(function: _Function) -> _Function:
        for op in ops:
            _register(_name_of(op), _Gradient(function, not_derivative), site)
        return function

    return register


def no_gradient(*ops: str | OpHandle) -> None:
    """Declare that ops have no gradient: their outputs count as constant.

    Raises:
        AlreadyExistsError: as `register_gradient`.
    """
    site = declaring_site(sys._getframe(1))
    for op in ops:
        _register(_name_of(op), _Gradient(None), site)


def look_up_gradient(op_type: str) -> GradientFunction | None:
    """The gradient function of an op; None for an op that has no gradient.

    Raises:
        NotFoundError: nothing is registered for it.
    """
    entry = _find(op_type)
    if entry is None:
        raise NotFoundError(f"No gradient defined for op: {op_type}{misspelt(op_type)}", op=op_type)
    return entry.function


def gradient_function_of(op: Operation) -> GradientFunction | None:
    """The gradient function that an operation asks for, by its attr or else by its op.

    Raises:
        NotFoundError: nothing is registered for it.
    """
    from opkernel.graph.core.node import GRADIENT_OP_TYPE_ATTR

    attrs = op.node_def.attr
    name = op.type
    if GRADIENT_OP_TYPE_ATTR in attrs:
        name = attrs[GRADIENT_OP_TYPE_ATTR].s.decode(errors="replace")
        custom: GradientFunction | None = op.graph.function_library.custom_gradients.get(name)
        if custom is not None:
            return custom
    entry = _find(name)
    if entry is None:
        raise NotFoundError(
            f"No gradient defined for operation '{op.name}' (op type: {name}){misspelt(name)}: "
            f"register one with register_gradient({name!r}), or put a StopGradient node where no gradient is needed",
            node=op.name,
            op=op.type,
        )
    return entry.function


def has_gradient_entry(op_type: str) -> bool:
    """Whether something is registered for an op, if only that it has no gradient."""
    return _find(op_type) is not None


def gradient_sites() -> dict[str, DeclaringSite]:
    """The places that registered gradients so far, by op."""
    return _gradients.sites()


def gradient_site(op_type: str) -> DeclaringSite | None:
    """The place that registered the gradient of an op, or that it has none; None where nothing did."""
    _find(op_type)
    return _gradients.site(op_type)


def gradients_of_no_op() -> dict[str, str]:
    """The names, outside the catalogue, that have a gradient and that no op has, with the modules.

    Such a name is misspelt, or its op is registered later, or the attr `_gradient_op_type` of nodes
    gives it.
    """
    owners = {name: site.owner for name, site in _gradients.sites().items()}
    outside = {name: owner for name, owner in owners.items() if not _is_catalogue(owner)}
    known = set(global_op_registry().names()) if outside else ()
    return {name: owner for name, owner in outside.items() if name not in known}


def misspelt(op_type: str) -> str:
    """What to say of an op without gradient where a like name, which is no op's, has one."""
    others = gradients_of_no_op()
    near = like(op_type, others) if others else ""
    return f"; one is registered for {near}, which is no op" if near else ""


def why_not_derivative(op_type: str) -> str:
    """Why the gradient of an op is on purpose not the derivative; empty where it is."""
    entry = _find(op_type)
    return "" if entry is None else entry.not_derivative


def is_of_catalogue(op_type: str) -> bool:
    """Whether the catalogue defines the gradient of an op."""
    site = gradient_site(op_type)
    return site is not None and _is_catalogue(site.owner)


def _find(name: str) -> _Gradient | None:
    if name not in _gradients and name not in _asked:
        CATALOGUE.get().load_gradient(name)
        _asked.add(name)
    return _gradients.get(name)


def _register(name: str, gradient: _Gradient, site: DeclaringSite) -> None:
    before = _gradients.site(name) if _is_catalogue(site.owner) else gradient_site(name)
    if before is not None and before.owner != site.owner:
        raise AlreadyExistsError(
            f"The gradient of {name} is registered by '{before.owner}' already; '{site.owner}' "
            "may give nodes another one with their attr '_gradient_op_type'",
            op=name,
        )
    _gradients.put(name, gradient, site)
    if before is not None:
        warn_of_second(f"The gradient of {name}", site, before)


def _is_catalogue(owner: str) -> bool:
    return owner.startswith("opkernel.")


def _name_of(op: str | OpHandle) -> str:
    return op if isinstance(op, str) else op.name
