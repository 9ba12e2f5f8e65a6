"""KernelRegistration, and the choice of the registration that computes a node.

A kernel fits a node if it is for the device's type and the node's label (attr `_kernel`), and if the
node's attrs satisfy its constraints. The kernel of the highest priority is taken. Where no kernel that is
registered for the device type fits, those that are derived for it (`KernelRegistry.derive`) are tried, then
the kernels for `DEFAULT`.

Source: TensorFlow core/framework/op_kernel.cc and kernel_def_util.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel.contract import UNCLAIMED, KernelContract
from opkernel.kernel.registry.kernel_def import constraints_overlap, summarize_kernel_def
from opkernel.opdef import attr_value_has_type
from opkernel.opdef import text as summaries
from opkernel.proto import KernelDef, NodeDef, OpDef
from opkernel.records import dataclass
from opkernel.registrations import DeclaringSite
from opkernel.types import DEVICE_DEFAULT

if TYPE_CHECKING:  # a kernel knows nothing of its registration
    from opkernel.kernel.context.construction import OpKernelConstruction
    from opkernel.kernel.op_kernel import OpKernel

_T = TypeVar("_T")

_MAX_FOUND = 1024

DEFAULT_DEVICE_TYPE = DEVICE_DEFAULT
"""Kernels registered for this device type serve every device type that has no kernel itself."""

SYMBOLIC_DEVICE_TYPES = frozenset({"XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT"})
"""Devices that only trace: their kernels are translations, and no other kernel will do."""


class Mismatch(NamedTuple):
    """A kernel of the right device and label, and the first of its constraints that fails."""

    kernel_def: KernelDef
    constraint: int


@dataclass(frozen=True, slots=True, eq=False)
class KernelRegistration:
    """A kernel as registered: its declaration, and how one is made for a node.

    Attributes:
        kernel_def: the declaration of the kernel; not to be changed after registration.
        class_name: the name of the kernel's class or function, for messages.
        factory: makes the kernel of a node.
        owner: the module that registered it; empty if that is not known.
        is_system: the kernel belongs to the system's own ops (REGISTER_SYSTEM_KERNEL_BUILDER);
            every selection of kernels keeps it.
        contract: the claims of the kernel.
        site: where it is registered.
        kernel: the registered object: a function, a class, or a factory.
        op_def: the op that it was checked against then.
    """

    kernel_def: KernelDef
    class_name: str
    factory: Callable[[OpKernelConstruction], OpKernel]
    owner: str = ""
    is_system: bool = False
    contract: KernelContract = UNCLAIMED
    site: DeclaringSite | None = None
    kernel: Any = None
    op_def: OpDef | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Op, device type and label: the key of a lookup."""
        return self.kernel_def.op, self.kernel_def.device_type, self.kernel_def.label

    def serves(self, node_def: NodeDef) -> bool:
        """Whether the kernel takes the node's label and attrs."""
        return (
            kernel_label(node_def) == self.kernel_def.label
            and violated_constraint(self.kernel_def, node_def) is None
        )

    @property
    def described(self) -> str:
        """The kernel's name, module and line, for messages."""
        if self.site is None:
            return self.class_name
        return f"{self.class_name} (module {self.owner}, {self.site.file}:{self.site.line})"

    def replaces(self, other: KernelRegistration) -> bool:
        """Whether this registers `other` again, as a notebook's cell does that runs twice.

        It does where the same module declares a kernel of the same op, device and label again: with the
        same constraints at the same priority, or by the same name for some of the same nodes. Different
        kernels that one run of the module's code registers do not replace each other.
        """
        if other is self:
            return True
        if self.owner == "" or self.owner != other.owner or self.key != other.key:
            return False
        if self._stands_beside(other):
            return False
        new, old = self.kernel_def, other.kernel_def
        is_same = new.priority == old.priority and list(new.constraint) == list(old.constraint)
        is_named = self.class_name == other.class_name and "<lambda>" not in self.class_name
        return is_same or (is_named and constraints_overlap(new, old))

    def _stands_beside(self, other: KernelRegistration) -> bool:
        """Whether one run of the module's code registers both, and they are different kernels.

        They are not where the op was declared anew in between.
        """
        here, there = self.site, other.site
        if here is None or there is None or not here.is_of_same_run(there):
            return False
        is_of_other_op = self.op_def is not other.op_def and None not in (self.op_def, other.op_def)
        if self.kernel is other.kernel or is_of_other_op:
            return False
        return here.line != there.line or _definition(self.kernel) != _definition(other.kernel)


def _definition(kernel: Any) -> object:
    """An object that is equal for functions and classes defined by the same lines."""
    while hasattr(kernel, "__wrapped__"):
        kernel = kernel.__wrapped__
    code = getattr(kernel, "__code__", None)
    name = getattr(kernel, "__name__", type(kernel))  # ufuncs of NumPy 2.1 have no __qualname__
    return code or getattr(kernel, "__qualname__", name)


class Found(dict[Hashable, _T]):
    """A bounded cache of choices."""

    __slots__ = ()

    def keep(self, key: Hashable, found: _T) -> None:
        """Have `found` found again."""
        if len(self) >= _MAX_FOUND:
            self.clear()
        self[key] = found


class _Candidates(NamedTuple):
    """The kernels of an op that a device type may have, and the attrs that decide which of them a node gets."""

    registered: Sequence[KernelRegistration]
    derived: Sequence[KernelRegistration]
    default: Sequence[KernelRegistration]
    attrs: tuple[str, ...]


class Choices:
    """The kernels of one op, until they change, and which of them were chosen for nodes.

    Args:
        registrations: The kernels, newest first.
        derive: Gives the kernels for a device type that are derived from these.
        load_more: Loads the kernels that are not asked for by name, and gives the choices from then on.

    Attributes:
        forms: What `form_of_node` found for whole nodes, kernels included.
    """

    __slots__ = ("_candidates", "_derive", "_found", "_load_more", "_registrations", "forms")

    def __init__(
        self,
        registrations: Sequence[KernelRegistration],
        derive: Callable[[str], Sequence[KernelRegistration]],
        load_more: Callable[[], Choices],
    ) -> None:
        self._registrations = registrations
        self._derive = derive
        self._load_more = load_more
        self._candidates: dict[str, _Candidates] = {}
        self._found: Found[KernelRegistration] = Found()
        self.forms: Found[Any] = Found()

    @property
    def has_any(self) -> bool:
        """Whether the op has kernels at all."""
        return bool(self._registrations)

    def match(
        self, device_type: str, node_def: NodeDef
    ) -> tuple[KernelRegistration | None, list[Mismatch]]:
        """The kernel for a node, or None, and the kernels that its attrs ruled out.

        A kernel that was found before is found again without a look at the constraints.

        Raises:
            InvalidArgumentError: two kernels fit equally well, or the node lacks an attr that a kernel has a
                constraint on.
        """
        candidates = self._candidates.get(device_type) or self._candidates_for(device_type)
        values = map(node_def.attr.get, candidates.attrs)
        key = device_type, *[value and value.SerializeToString() for value in values]
        known = self._found.get(key)
        if known is not None:
            return known, []
        mismatches: list[Mismatch] = []
        found = _choose(candidates, node_def, mismatches)
        if found is not None:
            self._found.keep(key, found)
            return found, mismatches
        more = self._load_more()
        return (None, mismatches) if more is self else more.match(device_type, node_def)

    def _candidates_for(self, device_type: str) -> _Candidates:
        registered, derived = self._registered(device_type), self._derive(device_type)
        falls_back = device_type not in SYMBOLIC_DEVICE_TYPES
        default = self._registered(DEFAULT_DEVICE_TYPE) if falls_back else []
        every = (*registered, *derived, *default)
        constrained = [c.name for one in every for c in one.kernel_def.constraint]
        attrs = tuple(dict.fromkeys(["_kernel", *constrained]))
        found = _Candidates(registered, derived, default, attrs)
        return self._candidates.setdefault(device_type, found)

    def _registered(self, device_type: str) -> list[KernelRegistration]:
        return [one for one in self._registrations if one.kernel_def.device_type == device_type]


def _choose(
    candidates: _Candidates, node_def: NodeDef, mismatches: list[Mismatch]
) -> KernelRegistration | None:
    """The kernel for a node by the rules; the kernels that its attrs rule out go to `mismatches`."""
    best: KernelRegistration | None = None
    for kernels in (candidates.registered, candidates.derived):
        for one in _fitting(kernels, node_def, mismatches):
            if best is not None and best.kernel_def.priority == one.kernel_def.priority:
                raise _ambiguous("", " at the same priority", node_def, best, one)
            if best is None or best.kernel_def.priority < one.kernel_def.priority:
                best = one
        if best is not None:
            return best
    for one in _fitting(candidates.default, node_def, mismatches):
        if best is not None:  # priorities do not count among these
            raise _ambiguous("Default ", "", node_def, best, one)
        best = one
    return best


def _fitting(
    kernels: Iterable[KernelRegistration], node_def: NodeDef, mismatches: list[Mismatch]
) -> Iterator[KernelRegistration]:
    """The kernels for the node's label whose constraints hold."""
    label = kernel_label(node_def)
    for one in kernels:
        if one.kernel_def.label == label:
            violated = violated_constraint(one.kernel_def, node_def)
            if violated is None:
                yield one
            else:
                mismatches.append(Mismatch(one.kernel_def, violated))


def _ambiguous(
    kind: str, how: str, node_def: NodeDef, first: KernelRegistration, second: KernelRegistration
) -> InvalidArgumentError:
    fix = "other types= or a label=" if kind else "a higher priority=, other types= or a label="
    return InvalidArgumentError(
        f"Multiple {kind}OpKernel registrations match NodeDef{how} "
        f"'{summaries.format_node_def_for_error(node_def)}': '{summarize_kernel_def(first.kernel_def)}' and "
        f"'{summarize_kernel_def(second.kernel_def)}'; they are {first.described} and "
        f"{second.described}; give one of them {fix}",
        node=node_def.name,
        op=node_def.op,
    )


_ATTR_TYPE = {"s": "string", "i": "int", "b": "bool"}


def violated_constraint(kernel_def: KernelDef, node_def: NodeDef) -> int | None:
    """The index of the first constraint that the node's attrs violate; None where all hold.

    A type constraint on a `list(type)` attr holds when each element is allowed, so always for an
    empty list.

    Raises:
        InvalidArgumentError: the node lacks the attr of a constraint or has it with another type,
            or the constraint allows values of several types.
        UnimplementedError: the constraint allows nothing, or values that are neither types,
            strings, ints nor bools.

    Source: KernelAttrsMatch in TensorFlow's kernel_def_util.cc.
    """
    for index, constraint in enumerate(kernel_def.constraint):
        if not constraint_holds(kernel_def, constraint, node_def):
            return index
    return None


def constraint_holds(
    kernel_def: KernelDef, constraint: KernelDef.AttrConstraint, node_def: NodeDef
) -> bool:
    """Whether a node's attrs satisfy one constraint of a kernel; raises as `violated_constraint`."""
    field = _allowed_field(kernel_def, constraint)
    if constraint.name not in node_def.attr:
        raise InvalidArgumentError(
            f"OpKernel '{kernel_def.op}' has constraint on attr '{constraint.name}' not in "
            f"NodeDef '[{summaries.summarize_attrs(node_def)}]', "
            f"KernelDef: '{summarize_kernel_def(kernel_def)}'"
        )
    allowed = getattr(constraint.allowed_values.list, field)
    values = _constrained_values(kernel_def, constraint.name, field, node_def)
    return all(value in allowed for value in values)


def _allowed_field(kernel_def: KernelDef, constraint: KernelDef.AttrConstraint) -> str:
    """The field of the list of allowed values that holds them."""
    allowed = constraint.allowed_values
    fields = [field for field in ("type", "s", "i", "b") if getattr(allowed.list, field)]
    if len(fields) == 1:
        return fields[0]
    about = (
        f"KernelDef '{summarize_kernel_def(kernel_def)}' has constraint on attr "
        f"'{constraint.name}' with"
    )
    if fields:
        raise InvalidArgumentError(
            f"{about} more than one value type: {summaries.summarize_attr_value(allowed)}"
        )
    raise UnimplementedError(f"{about} unsupported type: {summaries.summarize_attr_value(allowed)}")


def _constrained_values(
    kernel_def: KernelDef, attr: str, field: str, node_def: NodeDef
) -> Iterable[Any]:
    """The values of a node's attr that a constraint on `field` is about."""
    value = node_def.attr[attr]
    if field == "type" and value.type:
        return [value.type]
    try:
        attr_value_has_type(value, _ATTR_TYPE.get(field, "list(type)"))
    except OpError:
        expected = f"'{_ATTR_TYPE[field]}'" if field in _ATTR_TYPE else "'type' or 'list(type)'"
        raise InvalidArgumentError(
            f"KernelDef '{summarize_kernel_def(kernel_def)}' has constraint on attr '{attr}' that "
            f"has value '{summaries.summarize_attr_value(value)}' that does not have type {expected} in "
            f"NodeDef '[{summaries.summarize_attrs(node_def)}]'"
        ) from None
    return list(value.list.type) if field == "type" else [getattr(value, field)]


def kernel_label(node_def: NodeDef) -> str:
    """The label in the node's attr `_kernel`; none where the attr is not a string."""
    if "_kernel" not in node_def.attr:
        return ""
    return node_def.attr["_kernel"].s.decode("utf-8", "surrogateescape")
