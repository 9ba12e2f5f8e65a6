"""The grammar of op specs: `"N: int >= 2"`, `"T: {float, int32} = DT_FLOAT"`, `"values: N * T"`.

    attr    = name ":" ( type | "list(" type ")" ) [ ">=" int ] [ "=" default ]
    type    = "string" | "int" | "float" | "bool" | "type" | "shape" | "tensor" | "func"
            | "numbertype" | "realnumbertype" | "quantizedtype"
            | "{" dtype or group { "," dtype or group } "}" | "{" string { "," string } "}"
    arg     = name ":" ( element | "Ref(" element ")" )
    element = [ number attr "*" ] ( dtype | type attr | list(type) attr )

The parsers fill in a declaration as far as they come before they raise SpecError, because the
specs after a wrong one may refer to it.

Source: TensorFlow core/framework/op_def_builder.cc.
"""

import re

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.declarations import FIELD_OF_KIND, find_attr, split_attr_type
from opkernel.opdef.text.attr_value_text import parse_attr_value
from opkernel.opdef.text.escaping import Cursor, c_unescape
from opkernel.proto import AttrValue, OpDef
from opkernel.types import NUMBER_TYPES, QUANTIZED_TYPES, REAL_NUMBER_TYPES, DataType

_SP = r"[ \t\n\v\f\r]*"
_SPACE = re.compile(_SP)
_ATTR_NAME = re.compile(rf"([A-Za-z][A-Za-z0-9_]*){_SP}:{_SP}")
_ARG_NAME = re.compile(rf"([a-z][a-z0-9_]*){_SP}:{_SP}")
_LIST_OPEN = re.compile(rf"list{_SP}\({_SP}")
_REF_OPEN = re.compile(rf"Ref{_SP}\({_SP}")
_REF_CLOSE = re.compile(rf"\){_SP}")
_ELEMENT = re.compile(rf"([A-Za-z][A-Za-z0-9_]*){_SP}")
_TIMES = re.compile(rf"\*{_SP}([A-Za-z][A-Za-z0-9_]*){_SP}")
_TYPE_WORD = re.compile(rf"([a-z0-9]+){_SP}")
_INTEGER = re.compile(rf"{_SP}(-?[0-9]+){_SP}")
_STRING = re.compile(rf'"((?:[^"\\]|\\.)*)"{_SP}|\'((?:[^\'\\]|\\.)*)\'{_SP}', re.DOTALL)

_GROUPS = {
    "numbertype": NUMBER_TYPES,
    "numerictype": NUMBER_TYPES,
    "quantizedtype": QUANTIZED_TYPES,
    "realnumbertype": REAL_NUMBER_TYPES,
    "realnumerictype": REAL_NUMBER_TYPES,
}

_LETTERS = "A-Za-z"
_LOWER = "a-z"

_LOWER_HINT = "names of inputs and outputs are lower case: letters, digits and _"
_KINDS_HINT = (
    "an attr is a string, int, float, bool, type, shape, tensor or func, a list(...) of these, or one "
    "of the types or strings in braces: {float, int32}"
)
_TYPES_HINT = "types are float, double, half, int32, int64, bool, string and so on"
_EXAMPLES = {
    "any": "3",
    "bool": "true",
    "float": "0.5",
    "func": "{ name: 'F' }",
    "int": "3",
    "shape": "{ dim { size: 3 } }",
    "string": "'same'",
    "tensor": "{ dtype: DT_INT32 tensor_shape {} int_val: 3 }",
    "type": "DT_FLOAT",
}


class SpecError(ValueError):
    """A spec breaks the grammar; the text says how, but not which spec it is.

    Attributes:
        position: Before which character the parser stopped, from 0.
        hint: A correction for that place; may be empty.
    """

    def __init__(self, text: str, position: int, hint: str = "") -> None:
        super().__init__(text)
        self.position = position
        self.hint = hint


class _SpecCursor(Cursor):
    """A position in a spec."""

    def wrong(self, text: str, hint: str = "") -> SpecError:
        """The error for the text at the front."""
        return SpecError(text, self.at, hint)

    def skip_space(self) -> None:
        self.take(_SPACE)


def parse_attr_spec(spec: str, attr: OpDef.AttrDef, *, allow_any: bool = False) -> None:
    """Read `spec` into `attr`; `allow_any` admits the type "any".

    Raises:
        SpecError: the spec breaks the grammar, or its default is no value of its type.
    """
    cursor = _SpecCursor(spec)
    name = cursor.take(_ATTR_NAME)
    if not name:
        raise _no_name("<name>:", spec, _LETTERS, "the name of an attr begins with a letter")
    attr.name = name[1]
    is_list = cursor.take(_LIST_OPEN) is not None
    kind = _parse_kind(cursor, attr, allow_any=allow_any)
    cursor.skip_space()
    if is_list and not cursor.take_literal(")"):
        raise cursor.wrong(f"Expected ) to close 'list(', not: '{cursor.rest}'")
    if is_list:
        cursor.skip_space()
    attr.type = f"list({kind})" if is_list else kind
    if (is_list or kind == "int") and cursor.take_literal(">="):
        attr.minimum = _parse_minimum(cursor)
        attr.has_minimum = True
    _parse_default(cursor, attr)


def _parse_kind(cursor: _SpecCursor, attr: OpDef.AttrDef, *, allow_any: bool) -> str:
    """The type of the attr or of its elements; sets `allowed_values` where it is restricted."""
    for kind in FIELD_OF_KIND:
        if cursor.take_literal(kind):
            return kind
    # TensorFlow eats the word before it asks whether the word is admitted.
    if cursor.take_literal("any") and allow_any:
        return "any"
    for group, dtypes in _GROUPS.items():
        if group != "realnumerictype" and cursor.take_literal(group):  # which only braces know
            attr.allowed_values.list.type.extend(dtypes)
            return "type"
    if not cursor.take_literal("{"):
        raise cursor.wrong(f"Trouble parsing type string at '{cursor.rest}'", _KINDS_HINT)
    cursor.skip_space()
    allowed = attr.allowed_values
    allowed.SetInParent()
    if cursor.rest.startswith(('"', "'")):
        _parse_allowed_strings(cursor, allowed)
        return "string"
    _parse_allowed_types(cursor, allowed)
    return "type"


def _parse_allowed_strings(cursor: _SpecCursor, allowed: AttrValue) -> None:
    while True:
        quoted = cursor.take(_STRING)
        if not quoted:
            raise cursor.wrong(
                f"Trouble parsing allowed string at '{cursor.rest}'", "strings are quoted"
            )
        escaped = quoted[1] if quoted[1] is not None else quoted[2]
        try:
            allowed.list.s.append(c_unescape(escaped))
        except ValueError as error:
            raise cursor.wrong(f'Trouble unescaping "{escaped}", got error: {error}') from None
        if _ends_braces(cursor, "strings"):
            return


def _parse_allowed_types(cursor: _SpecCursor, allowed: AttrValue) -> None:
    while True:
        position = cursor.at
        word = cursor.take(_TYPE_WORD)
        if not word:
            raise cursor.wrong(f"Trouble parsing type string at '{cursor.rest}'", _TYPES_HINT)
        dtype = DataType.find(word[1])
        dtypes = _GROUPS.get(word[1]) or (() if dtype is None else (dtype,))
        if not dtypes:
            raise SpecError(
                f"Unrecognized type string '{word[1]}'",
                position,
                f"{_TYPES_HINT}; strings are quoted",
            )
        allowed.list.type.extend(dtypes)
        if _ends_braces(cursor, "types"):
            return


def _ends_braces(cursor: _SpecCursor, what: str) -> bool:
    """Consume "," or "}" after an item in braces; a comma may stand before the closing brace."""
    if cursor.take_literal(","):
        cursor.skip_space()
        return cursor.take_literal("}")
    if not cursor.take_literal("}"):
        raise cursor.wrong(f"Expected , or }} after {what} in list, not: '{cursor.rest}'")
    return True


def _parse_minimum(cursor: _SpecCursor) -> int:
    at, position = cursor.rest, cursor.at
    found = cursor.take(_INTEGER)
    # int() refuses thousands of digits, which are out of range anyway.
    if not found or len(found[1]) > 40 or not -(2**63) <= int(found[1]) < 2**63:
        text = f"Could not parse integer lower limit after '>=', found '{at}' instead"
        raise SpecError(text, position)
    return int(found[1])


def _parse_default(cursor: _SpecCursor, attr: OpDef.AttrDef) -> None:
    if not cursor.take_literal("="):
        _check_nothing_left(cursor)
        return
    cursor.skip_space()
    try:
        attr.default_value.CopyFrom(parse_attr_value(attr.type, cursor.rest))
    except InvalidArgumentError:
        kind, is_list = split_attr_type(attr.type)
        example = f"[{_EXAMPLES[kind]}]" if is_list else _EXAMPLES[kind]
        hint = f"a default of type {attr.type} is written {example}"
        raise cursor.wrong(f"Could not parse default value '{cursor.rest}'", hint) from None


def _check_nothing_left(cursor: _SpecCursor) -> None:
    if cursor.rest:
        hint = "an int or a list alone has a minimum" if cursor.rest.startswith(">=") else ""
        raise cursor.wrong(f"Extra '{cursor.rest}' unparsed at the end", hint)


def parse_arg_spec(spec: str, arg: OpDef.ArgDef, op_def: OpDef) -> None:
    """Read the spec of an input or output into `arg`; `op_def` has the attrs it refers to.

    An attr that gives the length of the arg and has no minimum gets the minimum 1.

    Raises:
        SpecError: the spec breaks the grammar, or refers to an attr that is missing or no type.
    """
    cursor = _SpecCursor(spec)
    name = cursor.take(_ARG_NAME)
    if not name:
        raise _no_name("name:", spec, _LOWER, _LOWER_HINT)
    arg.name = name[1]
    if cursor.take(_REF_OPEN):
        arg.is_ref = True
    _parse_element(cursor, arg, op_def)
    if arg.is_ref and not cursor.take(_REF_CLOSE):
        raise cursor.wrong(f"Did not find closing ')' for 'Ref(', instead found: '{cursor.rest}'")
    _check_nothing_left(cursor)
    length = find_attr(op_def, arg.number_attr or arg.type_list_attr)
    if length is not None and not length.has_minimum:
        length.has_minimum = True
        length.minimum = 1


def _parse_element(cursor: _SpecCursor, arg: OpDef.ArgDef, op_def: OpDef) -> None:
    position = cursor.at
    first = cursor.take(_ELEMENT)
    if not first:
        raise cursor.wrong(
            f"Trouble parsing either a type or an attr name at '{cursor.rest}'", _TYPES_HINT
        )
    element = first[1]
    if times := cursor.take(_TIMES):
        arg.number_attr = element
        element, position = times[1], times.start(1)
    dtype = DataType.find(element)
    if dtype is not None:
        arg.type = dtype
        return
    attr = find_attr(op_def, element)
    if attr is None:
        attrs = ", ".join(attr.name for attr in op_def.attr) or "none"
        raise SpecError(
            f"Reference to unknown attr '{element}'", position, f"{_TYPES_HINT}; attrs are {attrs}"
        )
    if attr.type == "type":
        arg.type_attr = element
    elif attr.type == "list(type)":
        arg.type_list_attr = element
    else:
        text = f"Reference to attr '{element}' with type {attr.type} that isn't type or list(type)"
        raise SpecError(text, position)


def _no_name(what: str, spec: str, characters: str, rule: str) -> SpecError:
    """The error for a spec that does not begin with a name of these characters and a colon."""
    name = re.match(rf"[{characters}][{characters}0-9_]*|", spec)
    end = len(name[0]) if name else 0
    is_name = spec[end : end + 1] in ("", " ", "{") and end
    hint = "a colon belongs after the name" if is_name else rule
    return SpecError(f"Trouble parsing '{what}'", end, hint)


def parse_doc_name(line: str) -> tuple[str, str] | None:
    """The name and the text of a doc line `name: text`; None for any other line."""
    found = _ATTR_NAME.match(line)
    return (found[1], line[found.end() :]) if found else None
