"""Every op as a function: `opkernel.raw_ops.MatMul(a=..., b=..., transpose_a=True)`.

Arguments are keywords only and named as in `tf.raw_ops`; the names of the OpDef are taken, too, with
a `_` after keywords of Python. Inputs take arrays, or values that NumPy makes arrays of. Attrs that inputs
determine are worked out from them, and attrs with defaults may be left out.

Where a function is being traced the call adds a node to its body, inside `with graph.as_default():` and
where an input is a tensor of a graph, to that graph; arrays become constants there, and ops need no
kernel. Everywhere else the op runs at once.
"""

import inspect
import typing  # not `Any` from it: that is an op
from collections.abc import Callable

from opkernel.errors import NotFoundError
from opkernel.graph import apply_op
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.core.tensor import tensors_in
from opkernel.messages import did_you_mean
from opkernel.opdef import bind_call, call_parameters, global_op_registry, op_docstring, python_name
from opkernel.ops.api_defs import python_api_def
from opkernel.proto import OpDef
from opkernel.runtime.calls.eager import execute

_functions: dict[str, tuple[OpDef, Callable[..., typing.Any]]] = {}


def _raw_op(op_def: OpDef) -> Callable[..., typing.Any]:
    api_def = python_api_def(op_def.name)
    parameters = call_parameters(op_def, api_def)

    def raw_op(**arguments: typing.Any) -> typing.Any:
        try:
            node_name = arguments.pop("name", None)
            inputs, attrs = bind_call(op_def, parameters, arguments)
            tensor = next(tensors_in([*arguments.values()]), None)
            if tensor is not None or innermost_default() is not None:
                values = {python_name(key): value for key, value in {**inputs, **attrs}.items()}
                return apply_op(op_def.name, node_name, **values)
            return execute(op_def.name, inputs, attrs)
        except Exception as error:
            from opkernel.tracebacks import hide_frames

            hide_frames(error)
            raise

    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter(p.name, keyword, default=p.default) for p in parameters]
    shown.append(inspect.Parameter("name", keyword, default=None))
    raw_op.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # as `inspect` asks
    raw_op.__name__ = raw_op.__qualname__ = op_def.name
    raw_op.__doc__ = op_docstring(op_def, api_def)
    return raw_op


def __getattr__(name: str) -> Callable[..., typing.Any]:
    fact = f"module {__name__!r} has no op {name!r}"
    if name.startswith("__"):
        raise AttributeError(fact, name=name)
    registry = global_op_registry()
    try:
        op_def = registry.look_up_op_def(name)
    except NotFoundError:
        raise AttributeError(f"{fact}{did_you_mean(name, registry.names())}", name=name) from None
    known = _functions.get(name)
    if known is None or known[0] is not op_def:  # a notebook may declare it anew
        known = _functions[name] = op_def, _raw_op(op_def)
    return known[1]


def __dir__() -> list[str]:
    return global_op_registry().names()
