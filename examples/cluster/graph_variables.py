"""Variables of a graph, and Adam, in the ops of which TensorFlow 1 makes them."""

from typing import Any

import numpy as np

import opkernel
from opkernel import raw_ops

Array = np.ndarray[Any, Any]
LEARNING_RATE, BETA1, BETA2, EPSILON = (np.float32(x) for x in (1e-3, 0.9, 0.999, 1e-7))


class GraphVariable:
    """A variable of the default graph, on the device that the scopes say.

    Attributes:
        handle: Its handle.
        initializer: Gives it its first value.
    """

    def __init__(self, first: Any, name: str) -> None:
        first = np.asarray(first)
        self.dtype = opkernel.types.as_dtype(first.dtype)
        self.first = first
        self.handle = raw_ops.VarHandleOp(
            dtype=self.dtype, shape=first.shape, shared_name=name, name=name
        )
        with self.handle.graph.colocate_with(self.handle.op):
            self.initializer = raw_ops.AssignVariableOp(resource=self.handle, value=first)

    def read(self, name: str = "read") -> Any:
        """Its value, read where it is."""
        with self.handle.graph.colocate_with(self.handle.op):
            return raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype, name=name)


class Adam:
    """The state of Adam for some variables, beside each of them."""

    def __init__(self, variables: dict[str, GraphVariable], suffix: str = "") -> None:
        self._variables = variables
        graph = next(iter(self._variables.values())).handle.graph
        self.slots = {}
        for name, variable in variables.items():
            for slot in ("m", "v"):
                with graph.device(variable.handle.op.device):
                    self.slots[name, slot] = GraphVariable(
                        np.zeros_like(variable.first), f"{name}/{slot}{suffix}"
                    )
        first = next(iter(variables.values()))
        with graph.device(first.handle.op.device):
            self.powers = [
                GraphVariable(BETA1, f"beta1_power{suffix}"),
                GraphVariable(BETA2, f"beta2_power{suffix}"),
            ]

    @property
    def initializers(self) -> list[Any]:
        """What gives the state its first values."""
        return [v.initializer for v in (*self.slots.values(), *self.powers)]

    def apply(self, gradients: dict[str, Any]) -> list[Any]:
        """The operations of one step: each variable is changed where it is."""
        graph = next(iter(self._variables.values())).handle.graph
        powers = [power.read() for power in self.powers]
        updates = []
        for name, gradient in gradients.items():
            variable = self._variables[name]
            with graph.colocate_with(variable.handle.op):
                update = raw_ops.ResourceApplyAdam(
                    var=variable.handle,
                    m=self.slots[name, "m"].handle,
                    v=self.slots[name, "v"].handle,
                    beta1_power=powers[0],
                    beta2_power=powers[1],
                    lr=LEARNING_RATE,
                    beta1=BETA1,
                    beta2=BETA2,
                    epsilon=EPSILON,
                    grad=gradient,
                )
            updates.append(update)
        with graph.control_dependencies(updates):
            for power, value, beta in zip(self.powers, powers, (BETA1, BETA2), strict=True):
                with graph.colocate_with(power.handle.op):
                    after = raw_ops.Mul(x=value, y=beta)
                    updates.append(raw_ops.AssignVariableOp(resource=power.handle, value=after))
        return updates
