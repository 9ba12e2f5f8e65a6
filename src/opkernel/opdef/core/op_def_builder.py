"""`OpDefBuilder`: the chain that declares an op, after TensorFlow's REGISTER_OP.

Source: TensorFlow core/framework/op_def_builder.cc.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.op_traits import NO_TRAITS, OpTraits
from opkernel.opdef.core.spec import SpecError, parse_arg_spec, parse_attr_spec, parse_doc_name
from opkernel.proto import FullTypeDef, OpDef, OpDeprecation
from opkernel.records import dataclass, replace
from opkernel.registrations import DeclaringSite
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.opdef.shapes.inference_context import InferenceContext

OpShapeInferenceFn: TypeAlias = Callable[["InferenceContext"], None]
"""Sets the shapes of an op's outputs, or raises InvalidArgumentError."""

OpTypeConstructor: TypeAlias = Callable[[OpDef], None]
"""Completes the full types of an OpDef when it is built."""

FunctionTypeInferrer: TypeAlias = Callable[[str, Sequence[FullTypeDef]], FullTypeDef]
"""Infers the full types of a function's results from its arguments' types; the function is in an attr."""

TypeInferenceFn: TypeAlias = Callable[[Sequence[FullTypeDef], FunctionTypeInferrer], FullTypeDef]
"""Infers full types from the types of a node's inputs: a TFT_PRODUCT, or unset where none follows."""

_CONTROL_OUTPUT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass()
class OpRegistrationData:
    """The registration of an op: its declaration, and the functions that infer from it.

    Attributes:
        op_def: The declaration; shared, and not to be changed.
        shape_inference_fn: Infers output shapes; None where there is none to call.
        type_constructor: Completes the full types of the declaration.
        forward_type_fn: Infers the full types of outputs from the types of inputs.
        reverse_type_fn: Infers the full types of the node that gives one of the inputs.
        reverse_type_input: The number of that input.
        traits: The facts that passes may assume of the op.
        is_system: Whether every selection of ops holds it.
        is_function_op: Whether the op is a function of a library and not a registered op.
    """

    op_def: OpDef
    shape_inference_fn: OpShapeInferenceFn | None = None
    type_constructor: OpTypeConstructor | None = None
    forward_type_fn: TypeInferenceFn | None = None
    is_function_op: bool = False
    reverse_type_fn: TypeInferenceFn | None = None
    reverse_type_input: int = 0
    traits: OpTraits = NO_TRAITS
    is_system: bool = False


class OpDeclaration(Protocol):
    """A declaration that is built on demand."""

    @property
    def name(self) -> str:
        """The op's name."""

    @property
    def owner(self) -> str:
        """The module that declares the op; it alone may declare it anew."""

    @property
    def site(self) -> DeclaringSite:
        """The place of the declaration."""

    @property
    def traits(self) -> OpTraits:
        """The traits of the op, which passes rely on."""

    @property
    def is_system(self) -> bool:
        """Whether every selection of ops holds the op."""

    def build(self) -> OpRegistrationData:
        """Build the op; raises InvalidArgumentError where its specs are wrong."""


class OpDefBuilder:
    """Collects the parts of an op's declaration; every method but `finalize` returns the builder.

        builder = OpDefBuilder("Concat").attr("N: int >= 2").attr("T: type")
        builder.input("dim: int32").input("values: N * T").output("output: T")
        registration = builder.set_shape_fn(concat_shape).finalize()

    The order of attrs, inputs and outputs among each other does not matter. The specs' grammar is
    that of `opkernel.opdef.core.spec`. Nothing is parsed before `finalize`, which may be repeated.
    """

    def __init__(self, name: str) -> None:
        self._data = OpRegistrationData(OpDef(name=name))
        self._attrs: list[str] = []
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._control_outputs: list[str] = []
        self._doc = ""
        self._errors: list[str] = []
        self._allow_any = False

    @property
    def name(self) -> str:
        """The name of the op."""
        return self._data.op_def.name

    def op_def(self, op_def: OpDef) -> Self:
        """Take inputs, outputs, attrs and flags from an OpDef, before any specs."""
        self._data.op_def.MergeFrom(op_def)
        return self

    def attr(self, spec: str) -> Self:
        """Add an attr, e.g. `"T: {float, int32} = DT_FLOAT"` or `"N: int >= 1"`."""
        self._attrs.append(spec)
        return self

    def input(self, spec: str) -> Self:
        """Add an input, e.g. `"x: T"`, `"values: N * float"` or `"ref: Ref(T)"`."""
        self._inputs.append(spec)
        return self

    def output(self, spec: str) -> Self:
        """Add an output; the grammar of specs is the same as for inputs."""
        self._outputs.append(spec)
        return self

    def control_output(self, name: str) -> Self:
        """Add a named control output, which only functions have."""
        self._control_outputs.append(name)
        return self

    def doc(self, text: str) -> Self:
        """Set the documentation: a summary line, a description, then `name: text` for parts."""
        if self._doc:
            self._errors.append(f"Extra call to Doc() for Op {self.name}")
        else:
            self._doc = text
        return self

    def set_is_commutative(self) -> Self:
        """Say that the op with two inputs gives the same when they are swapped."""
        self._data.op_def.is_commutative = True
        return self

    def set_is_aggregate(self) -> Self:
        """Say that the op of N inputs of one type is associative and commutative in them."""
        self._data.op_def.is_aggregate = True
        return self

    def set_is_stateful(self) -> Self:
        """Say that calls with equal inputs may differ: none may be merged, folded or moved."""
        self._data.op_def.is_stateful = True
        return self

    def set_do_not_optimize(self) -> Self:
        """Keep the op from being merged or folded; the same flag as `set_is_stateful`."""
        return self.set_is_stateful()

    def set_allows_uninitialized_input(self) -> Self:
        """Let reference inputs be variables that have no value yet."""
        self._data.op_def.allows_uninitialized_input = True
        return self

    def set_is_distributed_communication(self) -> Self:
        """Say that the op talks to other processes."""
        self._data.op_def.is_distributed_communication = True
        return self

    def deprecated(self, version: int, explanation: str) -> Self:
        """Set the GraphDef version from which on the op is gone, and the text that names its substitute."""
        if self._data.op_def.HasField("deprecation"):
            self._errors.append(f"Deprecated called twice for Op {self.name}")
        else:
            deprecation = OpDeprecation(version=version, explanation=explanation)
            self._data.op_def.deprecation.CopyFrom(deprecation)
        return self

    def set_shape_fn(self, fn: OpShapeInferenceFn) -> Self:
        """Set the function that infers the shapes of outputs."""
        if self._data.shape_inference_fn is not None:
            self._errors.append(f"SetShapeFn called twice for Op {self.name}")
        else:
            self._data.shape_inference_fn = fn
        return self

    def set_traits(self, traits: OpTraits) -> Self:
        """Set the facts that passes may assume of the op."""
        self._data.traits = traits
        return self

    def set_type_constructor(self, fn: OpTypeConstructor | None) -> Self:
        """Set the function that completes the declaration's full types."""
        self._data.type_constructor = fn
        return self

    def set_forward_type_fn(self, fn: TypeInferenceFn | None) -> Self:
        """Set the function that infers the full types of outputs from the types of inputs."""
        self._data.forward_type_fn = fn
        return self

    def set_reverse_type_fn(self, input_number: int, fn: TypeInferenceFn | None) -> Self:
        """Set the function that infers, from the inputs' types, the type that an input's node must give."""
        self._data.reverse_type_fn = fn
        self._data.reverse_type_input = input_number
        return self

    def allow_attr_type_any(self) -> Self:
        """Admit the attr type "any", which stands for a Python object passed through."""
        self._allow_any = True
        return self

    def finalize(self) -> OpRegistrationData:
        """Parse everything. This reports errors of the specs; `validate_op_def` finds the others.

        Raises:
            InvalidArgumentError: specs break the grammar; the message lists all of them.
        """
        op_def = OpDef()
        op_def.CopyFrom(self._data.op_def)
        errors = [*self._errors, *self._parse_specs(op_def), *_apply_doc(self._doc, op_def)]
        if self._data.type_constructor is not None:
            self._data.type_constructor(op_def)
        if errors:
            raise InvalidArgumentError("\n".join(errors), op=op_def.name)
        return replace(self._data, op_def=op_def)

    def _parse_specs(self, op_def: OpDef) -> list[str]:
        """Read all specs into `op_def`; the result are the errors."""
        errors = []
        parse_attr = partial(parse_attr_spec, allow_any=self._allow_any)
        parse_arg = partial(parse_arg_spec, op_def=op_def)
        kinds: tuple[tuple[str, list[str], Any, Callable[[str, Any], None]], ...] = (
            ("Attr", self._attrs, op_def.attr, parse_attr),
            ("Input", self._inputs, op_def.input_arg, parse_arg),
            ("Output", self._outputs, op_def.output_arg, parse_arg),
        )
        for method, specs, parts, parse in kinds:
            for spec in specs:
                try:
                    parse(spec, parts.add())
                except SpecError as error:
                    errors.append(_told(error, method, spec, self.name))
        # Attrs that resolve to a resource do not count: such ops pass handles on.
        types = [arg.type for arg in (*op_def.input_arg, *op_def.output_arg)]
        op_def.is_stateful |= DataType.DT_RESOURCE in types
        return errors + self._add_control_outputs(op_def)

    def _add_control_outputs(self, op_def: OpDef) -> list[str]:
        errors = []
        for name in self._control_outputs:
            if found := _CONTROL_OUTPUT.match(name):
                op_def.control_output.append(found.group())
            else:
                errors.append(
                    f"Trouble parsing control output name '{name}' "
                    f'from ControlOutput("{name}") for Op {self.name}'
                )
        return errors


def _told(error: SpecError, method: str, spec: str, op: str) -> str:
    """The error of a spec: TensorFlow's sentence, the place, and a hint at what would be right there."""
    at = f"at character {error.position + 1}" if error.position < len(spec) else "at the end"
    hint = f": {error.hint}" if error.hint else ""
    return f'{error} from {method}("{spec}") for Op {op} ({at}{hint})'


def _apply_doc(text: str, op_def: OpDef) -> list[str]:
    """Split the documentation into summary, description and texts of parts; returns errors."""
    lines = [line.rstrip(" \t\n\v\f\r") for line in text.split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    if not lines:
        return []
    op_def.summary = lines[0]
    named = [i for i in range(1, len(lines)) if parse_doc_name(lines[i])]
    description = "\n".join(lines[1 : named[0] if named else None]).strip("\n")
    if description:
        op_def.description = description
    for start, stop in zip(named, [*named[1:], len(lines)], strict=False):
        name, first_line = parse_doc_name(lines[start]) or ("", "")
        if not _describe_part(op_def, name, _join_doc([first_line, *lines[start + 1 : stop]])):
            error = f"No matching input/output/attr for name '{name}' from Doc()"
            parts = ", ".join(part.name for part in _parts(op_def)) or "none"
            return [f"{error} for Op {op_def.name}; it has {parts}"]
    return []


def _join_doc(lines: Sequence[str]) -> str:
    """The lines without the indentation that all but the first share, and without blank ends."""
    indents = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line]
    indent = min(indents, default=0)
    return "\n".join([lines[0], *(line[indent:] for line in lines[1:])]).rstrip("\n")


def _describe_part(op_def: OpDef, name: str, description: str) -> bool:
    """Give the input, output or attr of that name its description; False if there is no such name."""
    for part in _parts(op_def):
        if part.name == name:
            part.description = description
            return True
    return False


def _parts(op_def: OpDef) -> list[OpDef.ArgDef | OpDef.AttrDef]:
    """The parts of an op that documentation describes."""
    return [*op_def.input_arg, *op_def.output_arg, *op_def.attr]
