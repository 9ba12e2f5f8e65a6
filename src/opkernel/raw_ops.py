"""Every registered op as a function: `opkernel.raw_ops.MatMul(a=..., b=..., transpose_a=True)`.

Arguments are keywords only, named as in the OpDef: inputs take arrays or what NumPy makes arrays
of; attrs that inputs determine, or that have defaults, may be left out. The op runs at once.
"""

import typing  # not `Any` from it: that is an op
from collections.abc import Callable

from opkernel.errors import NotFoundError
from opkernel.opdef import global_op_registry
from opkernel.runtime.eager import execute

__all__: list[str] = []


def _raw_op(name: str) -> Callable[..., typing.Any]:
    op_def = global_op_registry().look_up_op_def(name)
    inputs = frozenset(arg.name for arg in op_def.input_arg)

    def raw_op(**arguments: typing.Any) -> typing.Any:
        arguments.pop("name", None)
        given = {key: value for key, value in arguments.items() if key in inputs}
        attrs = {key: value for key, value in arguments.items() if key not in inputs}
        return execute(name, given, attrs)

    raw_op.__name__ = raw_op.__qualname__ = name
    raw_op.__doc__ = "\n\n".join(filter(None, (op_def.summary, op_def.description)))
    return raw_op


def __getattr__(name: str) -> Callable[..., typing.Any]:
    try:
        function = globals()[name] = _raw_op(name)
    except NotFoundError:
        raise AttributeError(f"module {__name__!r} has no op {name!r}") from None
    return function


def __dir__() -> list[str]:
    return sorted(op.name for op in global_op_registry().get_registered_ops())
