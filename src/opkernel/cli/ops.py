"""`opkernel ops`: the known ops, and their inputs, attrs and outputs."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

import opkernel
from opkernel.cli.completion import complete_ops
from opkernel.cli.files import InputFile, InputFileType, existing_file
from opkernel.cli.model import Model
from opkernel.cli.output import bad, counted, json_option, print_json, print_table, print_text
from opkernel.cli.registered import (
    find_op,
    listed_values,
    matching_ops,
    no_such_op,
    recorded_vectors,
    value_text,
)
from opkernel.decompile.numpy_functions import NUMPY_FUNCTIONS
from opkernel.device.device_factory import offered_device_types
from opkernel.gradients.registry import gradient_site, look_up_gradient
from opkernel.graph import ops_used_by_graph
from opkernel.kernel import REFERENCE, get_registered_kernels_for_op, registered_providers
from opkernel.kernel.function_kernel import callable_name
from opkernel.libraries import missing_packages
from opkernel.opdef import global_op_registry
from opkernel.proto import KernelDef, OpDef
from opkernel.registrations import DeclaringSite
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType

_PACKAGE = Path(opkernel.__file__).parent
_TABLE = _PACKAGE / "ops" / "declared" / "tensorflow_ops.pb.gz"
_PATTERNS = ("optimization", "graph", "runtime", "gradients")
"""The rooms whose modules may name ops that they rewrite or run."""


class Place(NamedTuple):
    """Where a thing that is known of an op stands.

    Attributes:
        what: The kind of thing.
        name: What it is called, or which it is.
        file: Its file; that of the package's own begins with the package.
        line: The line; 0 for a whole file.
    """

    what: str
    name: str
    file: str = ""
    line: int = 0


def places_of(op: str) -> list[Place]:
    """All that is known of a registered op, each with its place; kinds without any stand there with the name `none`."""
    kinds: dict[str, Callable[[str], Iterator[Place]]] = {
        "declaration": _declaration,
        "shape function": _shape_function,
        "kernel": partial(_kernels_at, is_reference=True),
        "provider": partial(_kernels_at, is_reference=False),
        "gradient": _gradient_at,
        "XLA rule": _xla,
        "OpenVINO rule": _openvino,
        "NumPy program": _numpy,
        "named by": _patterns,
        "vectors": _vectors,
        "library": _library,
    }
    return [
        one._replace(what=what)
        for what, find in kinds.items()
        for one in [*find(op)] or [Place(what, "none")]
    ]


def _declaration(op: str) -> Iterator[Place]:
    yield _at(op, *(global_op_registry().site(op) or (str(_TABLE), 0)))


def _shape_function(op: str) -> Iterator[Place]:
    function = global_op_registry().look_up(op).shape_inference_fn
    if function is not None:
        yield _of_code(function)


def _kernels_at(op: str, *, is_reference: bool) -> Iterator[Place]:
    """The kernels of the catalogue, or those of other providers."""
    for provider in registered_providers():
        if (provider.name == REFERENCE) is is_reference:
            owner = "" if is_reference else f"{provider.name}: "
            for one in provider.kernels.registrations_for(op):
                name = f"{owner}{one.class_name} ({_kernel_text(one.kernel_def)})"
                yield _registered(name, one.site)


def _kernel_text(kernel: KernelDef) -> str:
    types = [
        f"{one.name}: {' '.join(map(str, listed_values(one.allowed_values.list)))}"
        for one in kernel.constraint
    ]
    return "; ".join([kernel.device_type, *([kernel.label] if kernel.label else []), *types])


def _name_of(function: Callable[..., Any], op: str) -> str:
    """The name of a function; that of its op where it has none."""
    return callable_name(function).replace("<lambda>", op)


def _gradient_at(op: str) -> Iterator[Place]:
    site = gradient_site(op)
    if site is not None:
        function = look_up_gradient(op)
        nothing = "nothing: its outputs count as constant"
        yield _registered(_name_of(function, op) if function else nothing, site)


def _xla(op: str) -> Iterator[Place]:
    from opkernel.xla.op_registry import global_xla_op_registry  # the room need not exist

    for one in global_xla_op_registry().registrations(op):
        device = one.kernel_def.device_type
        how = "" if device.startswith("XLA") else f"the {device}'s "
        yield _registered(f"{how}{_name_of(one.kernel, op)}", one.site)


def _openvino(op: str) -> Iterator[Place]:
    from opkernel.engines.openvino.op_rule import RULES  # the room need not exist

    rule = RULES.find(op)
    if rule is not None:
        yield _registered(_name_of(rule.build, op), RULES.site(op))


def _numpy(op: str) -> Iterator[Place]:
    function = NUMPY_FUNCTIONS.find(op)
    if function is not None:
        yield _of_code(function)


def _patterns(op: str) -> Iterator[Place]:
    named = re.compile(rf'"(?:[\w ]+ )?{re.escape(op)}(?: [\w ]+)?"')
    for room in _PATTERNS:
        for file in sorted((_PACKAGE / room).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            lines = {text.count("\n", 0, found.start()) + 1 for found in named.finditer(text)}
            if lines:
                yield _at(file.stem, str(file), min(lines))


def _vectors(op: str) -> Iterator[Place]:
    if op in recorded_vectors():
        right, total = recorded_vectors()[op]
        yield Place("", f"{right} of {total} calls recorded from TensorFlow are answered right")


def _library(op: str) -> Iterator[Place]:
    extra = global_op_registry().traits(op).extra
    if extra:
        missing = missing_packages(extra)
        state = f"not installed: pip install 'opkernel[{extra}]'" if missing else "installed"
        yield Place("", f"opkernel[{extra}], which is {state}")


def _of_code(function: Any) -> Place:
    """The place of a function or class; of a partial the place of its function."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    name = callable_name(function)
    code = getattr(function, "__code__", None)
    if code is not None:
        return _at(name, code.co_filename, code.co_firstlineno)
    if isinstance(function, type):
        return _at(name, inspect.getsourcefile(function) or "", inspect.getsourcelines(function)[1])
    return Place("", f"{getattr(function, '__module__', None) or 'numpy'}.{name}")


def _registered(name: str, site: DeclaringSite | None) -> Place:
    return Place("", name) if site is None else _at(name, site.file, site.line)


def _at(name: str, file: str, line: int) -> Place:
    path = Path(file)
    own = path.is_relative_to(_PACKAGE)
    shown = os.path.join("opkernel", path.relative_to(_PACKAGE)) if own else file
    return Place("", name, shown, line)


@click.command()
@click.argument("patterns", nargs=-1, metavar="[PATTERN]", shell_complete=complete_ops)
@click.option(
    "--needed-by",
    "models",
    multiple=True,
    type=InputFileType(),
    metavar="MODEL...",
    help="List the ops that these graphs use, and in how many nodes.",
)
@json_option
def ops(patterns: tuple[str, ...], models: tuple[InputFile, ...], as_json: bool) -> None:
    """List all known ops.

    PATTERN is the name of an op, to see all that is known of it and where it stands, or a part of names, or has shell wildcards. Ops
    whose names begin with an underscore are listed where it does, too.
    """
    if models:
        _print_needed([*models, *map(existing_file, patterns)], as_json)
        return
    if len(patterns) > 1:
        raise click.UsageError(f"there is one PATTERN at most; got {' '.join(patterns)}")
    pattern = patterns[0] if patterns else "*"
    op = find_op(pattern)
    rows = [_row(op) for op in ([op] if op is not None else matching_ops(pattern))]
    if not rows:
        raise no_such_op(pattern)
    if op is not None:
        rows[0]["places"] = [one._asdict() for one in places_of(op.name)]
    if as_json:
        print_json(rows)
    elif op is not None:
        _print_one(rows[0])
    else:
        print_table(
            counted(len(rows), "op"),
            ("op", "kernels", "signature"),
            [(row["op"], _words(row["kernels"]), _signature(row)) for row in rows],
        )


def _print_needed(models: Iterable[InputFile], as_json: bool) -> None:
    used: Counter[str] = Counter()
    for model in models:
        used += ops_used_by_graph(Model(model).graph_def())
    rows: list[dict[str, Any]] = [
        {"op": name, "nodes": count, "known": find_op(name) is not None, "kernels": _devices(name)}
        for name, count in sorted(used.items())
    ]
    if as_json:
        print_json(rows)
        return
    cells = [
        (r["op"], r["nodes"], _words(r["kernels"]) if r["known"] else bad("unknown op"))
        for r in rows
    ]
    print_table(counted(len(rows), "op"), ("op", "nodes", "kernels"), cells)


def _devices(op: str) -> list[str]:
    """The devices that an op can run on."""
    if op in RUN_BY_EXECUTORS:
        return sorted(offered_device_types())
    return sorted({kernel.device_type for kernel in get_registered_kernels_for_op(op).kernel})


def _row(op: OpDef) -> dict[str, Any]:
    return {
        "op": op.name,
        "summary": op.summary,
        "inputs": [_arg(arg) for arg in op.input_arg],
        "outputs": [_arg(arg) for arg in op.output_arg],
        "attrs": [_attr(attr) for attr in op.attr],
        "is_stateful": op.is_stateful,
        "traits": global_op_registry().traits(op.name).words().split(),
        "kernels": _devices(op.name),
    }


def _arg(arg: OpDef.ArgDef) -> dict[str, str]:
    """An argument as the spec language writes it: `values: N * T`."""
    kind = arg.type_attr or arg.type_list_attr or DataType(arg.type).string
    kind = f"{arg.number_attr} * {kind}" if arg.number_attr else kind
    return {"name": arg.name, "type": f"Ref({kind})" if arg.is_ref else kind}


def _attr(attr: OpDef.AttrDef) -> dict[str, Any]:
    described: dict[str, Any] = {"name": attr.name, "type": attr.type}
    if attr.HasField("default_value"):
        described["default"] = value_text(attr.default_value)
    if attr.has_minimum:
        described["minimum"] = attr.minimum
    if attr.HasField("allowed_values"):
        described["allowed"] = listed_values(attr.allowed_values.list)
    return described


def _args(args: Iterable[dict[str, str]]) -> str:
    return ", ".join(f"{arg['name']}: {arg['type']}" for arg in args)


def _signature(row: dict[str, Any]) -> str:
    return " -> ".join(filter(None, (_args(row["inputs"]), _args(row["outputs"]) or "nothing")))


def _words(words: Iterable[object]) -> str:
    return ", ".join(map(str, words))


def _print_one(row: dict[str, Any]) -> None:
    columns = ("", "name", "type", "default", "minimum", "allowed")
    parts = [
        (kind, *(part.get(column, "") for column in columns[1:-1]), _words(part.get("allowed", ())))
        for kind in ("input", "output", "attr")
        for part in row[f"{kind}s"]
    ]
    print_table(": ".join(filter(None, (row["op"], row["summary"]))), columns, parts)
    print_text(f"Traits: {_words(row['traits']) or 'none'}")
    print_text(f"Kernels: {_words(row['kernels']) or 'none'}")
    places, before = [], ""
    for one in row["places"]:
        where = f"{one['file']}:{one['line']}" if one["line"] else one["file"]
        places.append((one["what"] if one["what"] != before else "", where, one["name"]))
        before = one["what"]
    print_table("What is known of it", ("kind", "where", "which"), places)
