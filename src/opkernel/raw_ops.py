"""Every registered op as a function: `opkernel.raw_ops.MatMul(a=..., b=..., transpose_a=True)`.

Arguments are keywords only, named as in the OpDef: inputs take arrays or what NumPy makes arrays
of; attrs that inputs determine, or that have defaults, may be left out. The op runs at once.
"""

import typing  # not `Any` from it: that is an op
from collections.abc import Callable

from opkernel.errors import NotFoundError
from opkernel.opdef import global_op_registry
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.runtime.eager import execute

__all__: list[str] = []


def _raw_op(name: str) -> Callable[..., typing.Any]:
    op_def = global_op_registry().look_up_op_def(name)

    def raw_op(**arguments: typing.Any) -> typing.Any:
        arguments.pop("name", None)
        now = global_op_registry().look_up_op_def(name)  # a notebook may declare it anew
        inputs = {arg.name for arg in now.input_arg}
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
    registered = (op.name for op in global_op_registry().get_registered_ops())
    return sorted({*MODULE_OF_OP, *registered})
