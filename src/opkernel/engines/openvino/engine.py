"""OpenVinoEngine: clusters in float32, compiled by OpenVINO for the CPU.

Arithmetic on integers and on float64 stays outside: OpenVINO computes it in other types. Integers enter clusters as
indices, and as values that are known when a cluster is compiled, such as axes and shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.engines.openvino.library import NEED
from opkernel.engines.openvino.op_rule import CONSTANT_OPS, RULES
from opkernel.graph import FunctionBody, Operation
from opkernel.graph.core.structural_ops import ARG_OPS
from opkernel.libraries import check_installed
from opkernel.runtime.engines.engine import ClusterArgument, CompiledCluster, Engine
from opkernel.types import DataType

_CONSTANTS = frozenset({DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_INT64, DataType.DT_BOOL})


class OpenVinoEngine(Engine):
    """Parts of graphs in float32, by OpenVINO."""

    name = "openvino"
    extra = "openvino"
    lower_precisions = ("bfloat16",)

    def check_installed(self) -> None:
        """Raise UnimplementedError where OpenVINO is not installed."""
        check_installed("openvino", NEED)

    def refusal(self, op: Operation) -> str:
        """Why an operation stays outside: it has no rule, or its rule does not take this node."""
        if op.type in CONSTANT_OPS:
            dtype = op.output_types[0]
            return "" if dtype in _CONSTANTS else f"constants of {dtype.string} stay outside"
        rule = RULES.find(op.type)
        return RULES.missing(op.type) if rule is None else rule.refusal(op)

    def compile_time_constants(self, body: FunctionBody) -> frozenset[int]:
        """The arguments that are axes, shapes and the like."""
        found = set()
        for op in body.graph.get_operations():
            rule = RULES.find(op.type)
            if rule is not None:
                places = rule.constant_places(op) if rule.constants else ()
                sources = [op.inputs[place].op for place in places]
                found |= {one.attr["index"].i for one in sources if one.type in ARG_OPS}
        return frozenset(found)

    def compile(self, body: FunctionBody, arguments: Sequence[ClusterArgument]) -> CompiledCluster:
        """Compile a cluster for arguments of these shapes."""
        # Not to be loaded before.
        from opkernel.engines.openvino.compiled_cluster import OpenVinoCluster

        return OpenVinoCluster(body, arguments, self.precision)
