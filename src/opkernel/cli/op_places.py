"""Where all that is known of an op stands: its declaration, its kernels, its rules, the patterns that name it."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import opkernel
from opkernel.cli.recorded_vectors import recorded_vectors
from opkernel.cli.registered import listed_values
from opkernel.decompile.numpy_functions import NUMPY_FUNCTIONS
from opkernel.gradients.registry import gradient_site, look_up_gradient
from opkernel.kernel import REFERENCE, KernelRegistration, registered_providers
from opkernel.kernel.function_kernel import callable_name
from opkernel.libraries import missing_packages
from opkernel.opdef import global_op_registry
from opkernel.proto import KernelDef
from opkernel.registrations import DeclaringSite

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
        "kernel": _kernels,
        "provider": _providers,
        "gradient": _gradient,
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


def _kernels(op: str) -> Iterator[Place]:
    for provider in registered_providers():
        if provider.name == REFERENCE:
            yield from map(_kernel, provider.kernels.registrations_for(op))


def _providers(op: str) -> Iterator[Place]:
    for provider in registered_providers():
        if provider.name != REFERENCE:
            for one in provider.kernels.registrations_for(op):
                place = _kernel(one)
                yield place._replace(name=f"{provider.name}: {place.name}")


def _kernel(one: KernelRegistration) -> Place:
    return _registered(f"{one.class_name} ({_kernel_text(one.kernel_def)})", one.site)


def _kernel_text(kernel: KernelDef) -> str:
    types = [
        f"{one.name}: {' '.join(map(str, listed_values(one.allowed_values.list)))}"
        for one in kernel.constraint
    ]
    return "; ".join([kernel.device_type, *([kernel.label] if kernel.label else []), *types])


def _gradient(op: str) -> Iterator[Place]:
    site = gradient_site(op)
    if site is not None:
        function = look_up_gradient(op)
        name = callable_name(function) if function else "nothing: its outputs count as constant"
        yield _registered(name, site)


def _xla(op: str) -> Iterator[Place]:
    from opkernel.xla.op_registry import global_xla_op_registry  # the room need not exist

    for one in global_xla_op_registry().registrations(op):
        device = one.kernel_def.device_type
        how = "" if device.startswith("XLA") else f"the {device}'s "
        yield _registered(f"{how}{callable_name(one.kernel)}", one.site)


def _openvino(op: str) -> Iterator[Place]:
    from opkernel.engines.openvino.op_rule import rules  # the room need not exist

    if op in rules():
        yield _registered(callable_name(rules()[op].build), rules().site(op))


def _numpy(op: str) -> Iterator[Place]:
    if op in NUMPY_FUNCTIONS:
        yield _of_code(NUMPY_FUNCTIONS[op])


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
