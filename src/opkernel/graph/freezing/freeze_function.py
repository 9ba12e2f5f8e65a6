"""freeze_function: a traced function as a graph with constants for its variables.

Source: TensorFlow python/framework/convert_to_constants.py (convert_variables_to_constants_v2).
"""

from __future__ import annotations

from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.graph.core.captured_value import CapturedValue
from opkernel.graph.core.graph import Graph
from opkernel.graph.freezing.freeze_graph import freeze_graph
from opkernel.graph.tracing.concrete_function import ConcreteFunction


def freeze_function(function: ConcreteFunction) -> Graph:
    """A new graph that computes what a function does, with the values that its variables have now.

        signature = model.signatures["serving_default"]
        traced = opkernel.function(signature).get_concrete_function(**signature.inputs)
        opkernel.save_graph(opkernel.freeze_function(traced), "model.pb")

    Placeholders stand for the arguments, under the names of `function.inputs`; results are tensors of the names of
    `function.outputs`.

    Args:
        function: The function; it stays as it is.

    Raises:
        FailedPreconditionError: a variable has no value, or the function changes one.
        UnimplementedError: the function takes a table.
    """
    values = {
        inside.op.name: _value(value) for value, inside in function.graph.captured_values.items()
    }
    return freeze_graph(function.graph, function.outputs, captured=values)


def _value(value: CapturedValue) -> Any:
    read = getattr(value, "numpy", None)
    if read is None:
        raise UnimplementedError(
            f"The function takes {value.name!r} from outside, a table or another resource, which a graph cannot keep: "
            f"freeze the SavedModel by a session (opkernel.load_as_session)"
        )
    return read()
