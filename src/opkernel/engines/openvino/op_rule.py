"""OpRule: what OpenVINO makes of an op, and which nodes of the op it takes.

    @openvino_op("Softmax", differs_for_non_finite=True)
    def softmax(logits): ...

A builder takes the op's inputs in order, a list argument as one list, and the attrs that it names as keywords. Its
inputs are outputs of OpenVINO's nodes; those that the rule calls constants are NumPy arrays. It returns a node or
an output of one; a tuple where the op has several outputs. The keyword `output_shapes` is no attr: it is what the shape
function of the op says.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from opkernel.graph import Operation
from opkernel.graph.core.structural_ops import ARG_OPS
from opkernel.kernel.function_kernel import keywords_of
from opkernel.kernel.node_properties import NodeProperties
from opkernel.opdef import attr_to_python
from opkernel.records import dataclass
from opkernel.registrations import OpRules, declaring_site, import_modules
from opkernel.runtime.program.request import is_deterministic
from opkernel.types import DataType

CONSTANT_OPS = frozenset({"Const", "_HostConst"})
_KNOWN_OPS = CONSTANT_OPS | ARG_OPS
BOOL = frozenset({DataType.DT_BOOL})
INDEX = frozenset({DataType.DT_INT32, DataType.DT_INT64})
_FLOAT = frozenset({DataType.DT_FLOAT})

Builder = Callable[..., Any]
_B = TypeVar("_B", bound=Builder)


@dataclass(frozen=True, eq=False)
class OpRule:
    """How nodes of an op are built.

    Attributes:
        build: Makes OpenVINO's nodes.
        keywords: The attrs that it takes.
        constants: The input arguments whose values must be known.
        types: The types of the arguments that are not float32, inputs and outputs.
        takes_empty: Whether it is called with tensors without elements, where some output has elements.
        differs_for_non_finite: Whether results for NaN or infinities are not TensorFlow's.
        refuses: Says of the attrs that it names why a node is refused; empty for one that is taken.
    """

    build: Builder
    keywords: tuple[str, ...]
    constants: frozenset[str]
    types: Mapping[str, Collection[DataType]]
    takes_empty: bool
    differs_for_non_finite: bool
    refuses: Callable[..., str] | None

    def refusal(self, op: Operation) -> str:
        """Why a node is not taken; empty if it is."""
        if self.differs_for_non_finite and is_deterministic():
            return "it treats NaN or infinities in a way of its own"
        reason = self._refusal_of_types(op)
        if reason or self.refuses is None:
            return reason
        return self.refuses(**attrs_of(op, keywords_of(self.refuses)))

    def _refusal_of_types(self, op: Operation) -> str:
        properties, constants = properties_of(op), self.constant_places(op)
        for place in constants:
            is_float = op.input_types[place] is DataType.DT_FLOAT
            if is_float and op.edges[2 * place].type not in _KNOWN_OPS:  # a cluster may compute it
                return "a value that must be known is computed"
        for arg in properties.input_args:
            for place in range(arg.start, arg.stop):
                dtype = op.input_types[place]
                if place not in constants and dtype not in self.types.get(arg.name, _FLOAT):
                    return f"{arg.name} is {dtype.string}"
        for arg in properties.output_args:
            for dtype in op.output_types[arg.start : arg.stop]:
                if dtype not in self.types.get(arg.name, _FLOAT):
                    return f"{arg.name} is {dtype.string}"
        return ""

    def constant_places(self, op: Operation) -> list[int]:
        """The inputs of a node whose values must be known."""
        args = properties_of(op).input_args
        return [
            at for arg in args if arg.name in self.constants for at in range(arg.start, arg.stop)
        ]


def properties_of(op: Operation) -> NodeProperties:
    """The arguments of a node, by name."""
    return NodeProperties.of(op.node_def, op.op_def, op.input_types, op.output_types)


def attrs_of(op: Operation, names: Iterable[str]) -> dict[str, Any]:
    """Attrs of a node, by name."""
    types = {attr.name: attr.type for attr in op.op_def.attr}
    return {name: attr_to_python(op.attr[name], types[name]) for name in names}


def openvino_op(
    *ops: str,
    constants: Sequence[str] = (),
    types: Mapping[str, Collection[DataType]] | None = None,
    takes_empty: bool = False,
    differs_for_non_finite: bool = False,
    refuses: Callable[..., str] | None = None,
) -> Callable[[_B], _B]:
    """Have the decorated function build nodes of some ops; the arguments are those of OpRule."""
    site = declaring_site(sys._getframe(1))

    def register(build: _B) -> _B:
        flags = takes_empty, differs_for_non_finite, refuses
        rule = OpRule(build, keywords_of(build), frozenset(constants), types or {}, *flags)
        for op in ops:
            RULES.add(op, rule, site)
        return build

    return register


@functools.cache
def rules() -> OpRules[OpRule]:
    """The rules of all ops; the modules that have them are imported at the first call."""
    from opkernel.engines.openvino import ops  # its modules need this one

    import_modules(ops)
    return RULES


RULES = OpRules[OpRule]("OpenVINO", lambda _: rules())
"""The rules, by op."""
