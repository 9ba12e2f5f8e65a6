"""`register_op`: declare an op in one call.

A module may declare an op again, as a notebook's cell does that is run twice: the last declaration counts.
"""

import sys
import threading
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.op_def_builder import (
    OpDefBuilder,
    OpRegistrationData,
    OpShapeInferenceFn,
    OpTypeConstructor,
    TypeInferenceFn,
)
from opkernel.opdef.core.op_registry import OpRegistry, global_op_registry
from opkernel.opdef.core.op_traits import NO_TRAITS, OpTraits
from opkernel.proto import OpDef
from opkernel.records import dataclass, replace
from opkernel.registrations import DeclaringSite, declaring_site

_Steps = list[tuple[str, tuple[Any, ...]]]
"""Methods of OpDefBuilder, each with its arguments."""


@dataclass(frozen=True)
class _Declaration:
    """The arguments of `register_op`."""

    name: str
    shape_fn: OpShapeInferenceFn
    traits: OpTraits
    is_system: bool
    steps: _Steps

    def builder(self) -> OpDefBuilder:
        _check_shape_fn(self.name, self.shape_fn)
        builder = OpDefBuilder(self.name).set_traits(self.traits).set_shape_fn(self.shape_fn)
        for method, arguments in self.steps:
            getattr(builder, method)(*arguments)
        return builder


class OpHandle:
    """An op that was declared with `register_op`; kernels and gradients are registered for it.

    Attributes:
        name: The op's name.
        site: The place of the declaration.
    """

    __slots__ = ("_declaration", "_lock", "_registration", "name", "site")

    def __init__(self, declaration: _Declaration, site: DeclaringSite) -> None:
        self.name = declaration.name
        self.site = site
        self._declaration = declaration
        self._registration: OpRegistrationData | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def build(self) -> OpRegistrationData:
        """The registration data of the op; its specs are parsed the first time.

        Raises:
            InvalidArgumentError: a spec breaks the grammar.
        """
        with self._lock:
            if self._registration is None:
                registration = self._declaration.builder().finalize()
                self._registration = replace(registration, is_system=self.is_system)
            return self._registration

    @property
    def owner(self) -> str:
        """The module that declares the op."""
        return self.site.owner

    def with_shape_fn(self, shape_fn: OpShapeInferenceFn) -> "OpHandle":
        """The same declaration with another shape function; it is not registered."""
        return OpHandle(replace(self._declaration, shape_fn=shape_fn), self.site)

    @property
    def traits(self) -> OpTraits:
        """The traits of the op, which passes rely on."""
        return self._declaration.traits

    @property
    def is_system(self) -> bool:
        """Whether every selection of ops holds the op."""
        return self._declaration.is_system

    @property
    def registration(self) -> OpRegistrationData:
        """The registration data of the op; raises as `build` does."""
        return self._registration or self.build()

    @property
    def op_def(self) -> OpDef:
        """The op's declaration, for reading only: it is shared. Raises as `build` does."""
        return self.registration.op_def


def register_op(
    name: str,
    *,
    inputs: Iterable[str] = (),
    outputs: Iterable[str] = (),
    attrs: Iterable[str] = (),
    shape_fn: OpShapeInferenceFn,
    doc: str = "",
    is_stateful: bool = False,
    is_commutative: bool = False,
    is_aggregate: bool = False,
    allows_uninitialized_input: bool = False,
    is_distributed_communication: bool = False,
    deprecated: tuple[int, str] | None = None,
    type_constructor: OpTypeConstructor | None = None,
    forward_type_fn: TypeInferenceFn | None = None,
    traits: str | OpTraits = NO_TRAITS,
    system: bool = False,
    registry: OpRegistry | None = None,
) -> OpHandle:
    """Declare an op. The declaration is checked at once; an error leaves nothing registered.

    Args:
        name: In CamelCase, or the signature: `"TopK(input: T) -> values: T, indices: int32"`.
        inputs: e.g. `"x: T"`, `"values: N * T"`, `"args: Tin"`, `"ref: Ref(float)"`.
        outputs: The same.
        attrs: e.g. `"T: {float, int32} = DT_FLOAT"`, `"N: int >= 1"`, `"mode: {'a', 'b'}"`.
        shape_fn: Infers the shapes of the outputs; `unknown_shape` if nothing is known of them.
        doc: A summary line, a description, then `name: text` for inputs, outputs and attrs.
        is_stateful: Calls with equal inputs may differ.
        is_commutative: The two inputs may be swapped.
        is_aggregate: The N inputs may be grouped and swapped.
        allows_uninitialized_input: Reference inputs may have no value yet.
        is_distributed_communication: The op talks to other processes.
        deprecated: The GraphDef version from which on the op is gone, and the op to use instead.
        type_constructor: Completes the full types of the declaration.
        forward_type_fn: Infers the full types of outputs.
        traits: All that passes may assume, as OpTraits or in words: `"pointwise cannot_fail"`, `"value_rule=add"`.
        system: `OpRegistry.select` keeps the op in every selection (REGISTER_SYSTEM_OP).
        registry: Where the op is registered; the global registry if None.

    Raises:
        AlreadyExistsError: another module has registered an op of that name.
        TypeError: a string stands where a list of specs is wanted, or `shape_fn` is no function of one argument.
        InvalidArgumentError: a spec breaks the grammar, the declaration contradicts itself, there is no
            such trait, or a kernel that was registered for the op before does not fit it.
    """
    flags = {
        "is_stateful": is_stateful,
        "is_commutative": is_commutative,
        "is_aggregate": is_aggregate,
        "allows_uninitialized_input": allows_uninitialized_input,
        "is_distributed_communication": is_distributed_communication,
    }
    name, steps = _interface(name, doc, inputs, outputs, attrs)
    steps += _settings(type_constructor, forward_type_fn, flags, deprecated)
    declared = _Declaration(name, shape_fn, _as_traits(traits), system, steps)
    handle = OpHandle(declared, declaring_site(sys._getframe(1)))
    (registry or global_op_registry()).declare(handle)
    return handle


def register_op_def(
    op_def: OpDef,
    *,
    shape_fn: OpShapeInferenceFn,
    doc: str = "",
    forward_type_fn: TypeInferenceFn | None = None,
    reverse_type_fn: tuple[int, TypeInferenceFn | None] = (0, None),
    traits: str | OpTraits = NO_TRAITS,
) -> OpHandle:
    """Declare an op whose OpDef is there already, as in an OpList; otherwise as `register_op`.

    Args:
        op_def: Its inputs, outputs, attrs and flags; without documentation.
        shape_fn: Infers the shapes of the outputs.
        doc: As `register_op` takes it.
        forward_type_fn: Infers the full types of outputs.
        reverse_type_fn: An input, and the function that infers the full types of the node that gives it.
        traits: All that passes may assume.

    Raises:
        AlreadyExistsError: another module has registered an op of that name.
        InvalidArgumentError: `doc` names no part of the op, or there is no such trait.
    """
    steps: _Steps = [("op_def", (op_def,)), ("doc", (doc,))]
    steps.append(("set_forward_type_fn", (forward_type_fn,)))
    steps.append(("set_reverse_type_fn", reverse_type_fn))
    declared = _Declaration(op_def.name, shape_fn, _as_traits(traits), False, steps)
    handle = OpHandle(declared, declaring_site(sys._getframe(1)))
    global_op_registry().declare(handle)
    return handle


def _interface(
    name: str, doc: str, inputs: Iterable[str], outputs: Iterable[str], attrs: Iterable[str]
) -> tuple[str, _Steps]:
    """The name of an op, and the steps that describe it; `name` may be the signature."""
    if "(" in name:
        if inputs or outputs:
            raise TypeError(f"{name}: the signature names the inputs and outputs; pass only attrs")
        name, inputs, outputs = _parts_of_signature(name)
    steps: _Steps = [("doc", (doc,))]
    for kind, specs in (("input", inputs), ("output", outputs), ("attr", attrs)):
        steps += [(kind, (spec,)) for spec in _listed(specs, f"{kind}s", name)]
    return name, steps


def _settings(
    type_constructor: OpTypeConstructor | None,
    forward_type_fn: TypeInferenceFn | None,
    flags: Mapping[str, bool],
    deprecated: tuple[int, str] | None,
) -> _Steps:
    steps: _Steps = [("set_type_constructor", (type_constructor,))]
    steps.append(("set_forward_type_fn", (forward_type_fn,)))
    steps += [(f"set_{flag}", ()) for flag, is_set in flags.items() if is_set]
    return steps if deprecated is None else [*steps, ("deprecated", deprecated)]


def _parts_of_signature(signature: str) -> tuple[str, list[str], list[str]]:
    """The name, and the specs of inputs and outputs, of `"Name(x: T, y: T) -> z: T"`.

    Raises:
        InvalidArgumentError: parentheses or the arrow are missing.
    """
    arguments, arrow, results = signature.partition("->")
    name, _, inputs = arguments.rstrip().partition("(")
    if not inputs.endswith(")") or bool(arrow) is not bool(results.strip()):
        raise InvalidArgumentError(
            f"The signature {signature!r} must have the form 'Name(x: T, y: T) -> z: T'"
        )
    return name, _split(inputs[:-1]), _split(results)


def _split(specs: str) -> list[str]:
    """The specs of inputs or outputs, which commas separate."""
    return [spec.strip() for spec in specs.split(",")] if specs.strip() else []


def _listed(specs: Iterable[str], what: str, op: str) -> tuple[str, ...]:
    if isinstance(specs, str):
        raise TypeError(
            f"{op}: {what} must be a list of specs, not the string {specs!r}; write [{specs!r}]"
        )
    found = tuple(specs)
    for spec in found:
        if not isinstance(spec, str):
            raise TypeError(
                f"{op}: {what} must be a list of strings such as 'x: float'; {spec!r} is none"
            )
    return found


def _as_traits(given: str | OpTraits) -> OpTraits:
    return OpTraits.from_words(given) if isinstance(given, str) else given


def _check_shape_fn(op: str, shape_fn: OpShapeInferenceFn) -> None:
    """Raise TypeError unless a shape function can be called with an InferenceContext."""
    if isinstance(shape_fn, FunctionType) and shape_fn.__code__.co_argcount == 1:
        return
    fact = _no_shape_fn(shape_fn)
    if fact:
        raise TypeError(
            f"{op}: shape_fn must be a function of one argument, the InferenceContext, {fact}; "
            "opkernel.opdef.unknown_shape says that nothing is known of the shapes"
        )


def _no_shape_fn(given: object) -> str:
    """Why something cannot be called as a shape function; empty where it can."""
    import inspect  # for all but plain functions of one argument

    if not callable(given):
        return f"not {given!r}"
    try:
        inspect.signature(given).bind(None)
    except TypeError as error:
        return f"and {getattr(given, '__qualname__', given)} is not: {error}"
    except ValueError:  # it does not tell its parameters
        pass
    return ""
