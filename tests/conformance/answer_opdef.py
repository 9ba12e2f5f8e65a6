"""Answers about op declarations, attr values and the op registry."""

import re
import warnings
from typing import Any

from google.protobuf import text_format

from opkernel.errors import FailedPreconditionError, OpError
from opkernel.opdef import (
    InferenceContext,
    OpDefBuilder,
    OpRegistrationData,
    OpRegistry,
    are_attr_values_equal,
    attr_value_has_type,
    attr_value_hash,
    check_op_deprecation,
    has_placeholder,
    op_def_added_defaults_unchanged,
    op_def_attr_defaults_unchanged,
    op_def_compatible,
    op_def_equal,
    parse_attr_value,
    remove_descriptions_from_op_def,
    remove_non_deprecation_descriptions_from_op_def,
    summarize_attr_value,
    summarize_op_def,
    validate_attr_value,
    validate_op_def,
)
from opkernel.proto import AttrValue, OpDef

Status = dict[str, Any]

OK = {"ok": True}


def refusal(error: OpError) -> Status:
    """The status object of an error."""
    return {"ok": False, "error_code": error.code.name, "error_text": error.message}


def status_of(function: Any, *args: Any) -> Status:
    """The status object of a call whose result does not matter."""
    try:
        function(*args)
    except OpError as error:
        return refusal(error)
    return OK


def one_line(message: Any) -> str:
    """The text form of a message."""
    return text_format.MessageToString(message, as_one_line=True)


def read(text: str, message: Any) -> Any:
    """The message that the text form spells."""
    return text_format.Parse(text, message)


def op_builder(op: dict[str, Any]) -> OpDefBuilder:
    """The builder after the requested calls, which have TensorFlow's names."""
    builder = OpDefBuilder(op.get("name", "Test"))
    for method, *args in op["calls"]:
        if method == "SetShapeFn":
            args = [_no_shapes]
        getattr(builder, re.sub(r"(?<!^)([A-Z])", r"_\1", method).lower())(*args)
    return builder


def _no_shapes(c: InferenceContext) -> None:
    """A shape function that infers nothing."""


def op_build(request: dict[str, Any]) -> Any:
    """What a builder makes of its calls."""
    try:
        op_def = op_builder(request).finalize().op_def
    except OpError as error:
        return {"finalize": refusal(error)}
    return {"finalize": OK, "op_def": one_line(op_def), **_checked(op_def)}


def op_validate(request: dict[str, Any]) -> Any:
    """Whether an OpDef is valid."""
    return _checked(read(request["op_def"], OpDef()))


def _checked(op_def: OpDef) -> dict[str, Any]:
    return {"validate": status_of(validate_op_def, op_def), "summary": summarize_op_def(op_def)}


def op_compat(request: dict[str, Any]) -> Any:
    """How a changed op compares with what it was."""
    ops = {what: op_builder(op).finalize().op_def for what, op in request.items()}
    old, new = ops["old"], ops["new"]
    answer = {
        "compatible": status_of(op_def_compatible, old, new),
        "attr_defaults_unchanged": status_of(op_def_attr_defaults_unchanged, old, new),
        "equal": op_def_equal(old, new),
        **{f"{what}_op_def": one_line(op_def) for what, op_def in ops.items()},
    }
    if "penultimate" in ops:
        penultimate = ops["penultimate"]
        added = status_of(op_def_added_defaults_unchanged, old, penultimate, new)
        answer["added_defaults_unchanged"] = added
    return answer


def op_deprecation(request: dict[str, Any]) -> Any:
    """Whether graphs of a version may use an op."""
    op_def = op_builder(request["op"]).finalize().op_def
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return {"status": status_of(check_op_deprecation, op_def, request["version"])}


def op_strip(request: dict[str, Any]) -> Any:
    """An op without its documentation."""
    op_def = op_builder(request["op"]).finalize().op_def
    remove_non_deprecation_descriptions_from_op_def(op_def)
    kept = one_line(op_def)
    remove_descriptions_from_op_def(op_def)
    return {"remove_non_deprecation": kept, "remove_descriptions": one_line(op_def)}


def attr_parse(request: dict[str, Any]) -> Any:
    """What the text of a default stands for."""
    try:
        value = parse_attr_value(request["type"], request["text"])
    except OpError:
        return {"ok": False}
    return {
        "ok": True,
        "attr_value": one_line(value),
        "summary": summarize_attr_value(value),
        "has_type": status_of(attr_value_has_type, value, request["type"]),
    }


def attr_summary(request: dict[str, Any]) -> Any:
    """A value on one line."""
    value = read(request["attr_value"], AttrValue())
    return {"summary": summarize_attr_value(value), "has_placeholder": has_placeholder(value)}


def attr_has_type(request: dict[str, Any]) -> Any:
    """Whether a value is of a type."""
    value = read(request["attr_value"], AttrValue())
    return {"status": status_of(attr_value_has_type, value, request["type"])}


def attr_validate(request: dict[str, Any]) -> Any:
    """Whether an AttrDef allows a value."""
    value = read(request["attr_value"], AttrValue())
    attr_def = read(request["attr_def"], OpDef.AttrDef())
    return {"status": status_of(validate_attr_value, value, attr_def)}


def attr_equal(request: dict[str, Any]) -> Any:
    """Whether two values are equal, and their hashes."""
    a, b = read(request["a"], AttrValue()), read(request["b"], AttrValue())
    return {
        "equal": are_attr_values_equal(a, b),
        "same_hash": attr_value_hash(a) == attr_value_hash(b),
    }


class RegistrySession:
    """A fresh registry, the requested calls on it, and what its watcher sees."""

    def __init__(self) -> None:
        self._registry = OpRegistry()
        self.watched: list[Any] = []

    def answer(self, method: str, args: list[Any]) -> Any:
        """The result of one call."""
        match method, args:
            case "Register", [op]:
                return self._register(op)
            case "LookUp", [name]:
                return self._look_up(name)
            case "Export", [include_internal]:
                return {"ops": [op.name for op in self._registry.export(include_internal).op]}
            case "ProcessRegistrations", []:
                return {"status": status_of(self._registry.process_registrations)}
            case "DeferRegistrations", []:
                self._registry.defer_registrations()
            case "ClearDeferredRegistrations", []:
                self._registry.clear_deferred_registrations()
            case "GetRegisteredOps", []:
                return {"ops": [op.name for op in self._registry.get_registered_ops()]}
            case "SetWatcher", [kind]:
                return self._set_watcher(kind)
            case "RegisterValidator", [accepts]:
                self._registry.register_validator(lambda _: _reject() if not accepts else None)
            case _:
                return {"unsupported": True}
        return {"done": True}

    def _register(self, op: Any) -> Any:
        try:
            if isinstance(op, str):
                self._registry.register(OpRegistrationData(read(op, OpDef())))
            else:
                self._registry.register(op_builder(op))
        except OpError as error:
            return refusal(error)
        return {"done": True}

    def _look_up(self, name: str) -> Any:
        try:
            op_def = self._registry.look_up_op_def(name)
        except OpError as error:
            return {"status": refusal(error)}
        return {"status": OK, "op_def": one_line(op_def)}

    def _set_watcher(self, kind: str) -> Any:
        def watcher(error: OpError | None, op_def: OpDef) -> OpError | None:
            self.watched.append({"op": op_def.name, "status": refusal(error) if error else OK})
            return None if kind == "swallow" else error

        return {
            "status": status_of(self._registry.set_watcher, None if kind == "none" else watcher)
        }


def _reject() -> None:
    raise FailedPreconditionError("validator rejects")


def registry(request: dict[str, Any]) -> Any:
    """The results of calls on a fresh registry."""
    session = RegistrySession()
    results = [session.answer(method, args) for method, *args in request["calls"]]
    return {"results": results, "watched": session.watched}
