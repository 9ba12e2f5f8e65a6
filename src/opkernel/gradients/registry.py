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

State: `_rules`, filled by the verbs; `_given_by_nodes`.
Source: TensorFlow python/framework/ops.py (RegisterGradient, get_gradient_function).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from opkernel.errors import AlreadyExistsError, NotFoundError
from opkernel.messages import like, short_repr
from opkernel.opdef import OpHandle, global_op_registry
from opkernel.opdef.core.op_lookup import CATALOGUE
from opkernel.records import dataclass
from opkernel.registrations import (
    DeclaringSite,
    OpRules,
    declaring_site,
    warn_at_exit,
    warn_of_second,
)

if TYPE_CHECKING:
    from opkernel.graph import Operation, Tensor

Gradients: TypeAlias = Any
"""The result of a gradient function: a gradient for each input, or a single one, or None."""

GradientFunction = Callable[..., Gradients]
"""`gradient(op, *grads)`, with the gradient of each output, None where none may be."""

Derivative = Callable[[Any], Any]
"""The derivative of a function of one tensor, from its argument or its result."""

_Function = TypeVar("_Function", bound=GradientFunction)


@dataclass(frozen=True, slots=True)
class _Gradient:
    """The gradient of an op; `function` is None for an op without one."""

    function: GradientFunction | None
    not_derivative: str = ""


_rules = OpRules[_Gradient](
    "gradient",
    lambda op: CATALOGUE.get().load_gradient(op),
    "No gradient defined for op: {op}",
)


_given_by_nodes: set[str] = set()
"""The names that the attr `_gradient_op_type` of nodes has given."""


def by_op(name: str, *attrs: str) -> GradientFunction:
    """The gradient function of an op that is linear in its first input, from the op that moves a gradient back.

    That op takes the gradient, the other inputs as they are, which have none, and these attrs.
    """

    def gradient(op: Operation, grad: Any) -> Gradients:
        from opkernel.gradients.gradient_nodes import attrs_of, nodes

        others = op.inputs[1:]
        moved = getattr(nodes, name)(grad, *others, **attrs_of(op, *attrs))
        return [moved, *[None] * len(others)]

    return gradient


def of_argument(derivative: Derivative) -> GradientFunction:
    """The gradient function of `y = f(x)` from `x -> f'(x)`."""
    return _of_tensor(derivative, lambda op: op.inputs[0])


def of_result(derivative: Derivative) -> GradientFunction:
    """The gradient function of `y = f(x)` from `y -> f'(x)`."""
    return _of_tensor(derivative, lambda op: op.outputs[0])


def _of_tensor(
    derivative: Derivative, tensor_of: Callable[[Operation], Tensor]
) -> GradientFunction:
    @functools.wraps(derivative)
    def gradient(op: Operation, grad: Tensor) -> Gradients:
        from opkernel.gradients.gradient_nodes import conj, nodes

        return nodes.Mul(grad, derivative(conj(tensor_of(op))))

    return gradient


def of_operands(gradients: Callable[..., tuple[Any, Any]]) -> GradientFunction:
    """The gradient function of an op of two operands that are broadcast.

    Args:
        gradients: From both operands and the gradient of the result the gradients of the operands, or None,
            before these are summed to the shapes of the operands.
    """

    @functools.wraps(gradients)
    def gradient(op: Operation, grad: Tensor) -> Gradients:
        from opkernel.gradients.gradient_nodes import sum_to_operands

        x, y = op.inputs
        return sum_to_operands(x, y, *gradients(x, y, grad))

    return gradient


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
    entry = _rules.find(op_type)
    if entry is None:
        raise not_defined(op_type)
    return entry.function


def not_defined(op_type: str) -> NotFoundError:
    """The error for an op that no gradient is registered for."""
    return NotFoundError(f"{_rules.missing(op_type)}{misspelt(op_type)}", op=op_type)


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
        _given_by_nodes.add(name)
    entry = _rules.find(name)
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
    return _rules.find(op_type) is not None


def gradient_sites() -> dict[str, DeclaringSite]:
    """The places that registered gradients so far, by op."""
    return _rules.sites()


def gradient_site(op_type: str) -> DeclaringSite | None:
    """The place that registered the gradient of an op, or that it has none; None where nothing did."""
    _rules.find(op_type)
    return _rules.site(op_type)


def gradients_of_no_op() -> dict[str, DeclaringSite]:
    """The names, outside the catalogue, that have a gradient and that no op has, with the places.

    Such a name is misspelt, or its op is registered later, or the attr `_gradient_op_type` of nodes
    gives it; names that a node has given by now are left out.
    """
    ops = global_op_registry()
    return {
        name: site
        for name, site in _rules.sites().items()
        if not (_is_catalogue(site.owner) or name in _given_by_nodes or ops.is_there(name))
    }


def notes_on_gradients_of_no_op() -> list[str]:
    """A sentence for each of `gradients_of_no_op`."""
    note = global_op_registry().note_on_missing
    return [
        f"{note('The gradient', name, site)}; only nodes with the attr _gradient_op_type = "
        f"{short_repr(name)} get it"
        for name, site in sorted(gradients_of_no_op().items())
    ]


def misspelt(op_type: str) -> str:
    """What to say of an op without gradient where a like name, which is no op's, has one."""
    others = gradients_of_no_op()
    near = like(op_type, others) if others else ""
    return f"; one is registered for {near}, which is no op" if near else ""


def why_not_derivative(op_type: str) -> str:
    """Why the gradient of an op is on purpose not the derivative; empty where it is."""
    entry = _rules.find(op_type)
    return "" if entry is None else entry.not_derivative


def is_of_catalogue(op_type: str) -> bool:
    """Whether the catalogue defines the gradient of an op."""
    site = gradient_site(op_type)
    return site is not None and _is_catalogue(site.owner)


def _register(name: str, gradient: _Gradient, site: DeclaringSite) -> None:
    before = _rules.site(name) if _is_catalogue(site.owner) else gradient_site(name)
    if before is not None and before.owner != site.owner:
        raise AlreadyExistsError(
            f"The gradient of {name} is registered by '{before.owner}' already; '{site.owner}' "
            "may give nodes another one with their attr '_gradient_op_type'",
            op=name,
        )
    _rules.put(name, gradient, site)
    if before is not None:
        warn_of_second(f"The gradient of {name}", site, before)
    if not _is_catalogue(site.owner):
        warn_at_exit(notes_on_gradients_of_no_op)


def _is_catalogue(owner: str) -> bool:
    return owner.startswith("opkernel.")


def _name_of(op: str | OpHandle) -> str:
    return op if isinstance(op, str) else op.name
