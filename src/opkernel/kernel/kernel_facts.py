"""KernelFacts: what a kernel knows of its node and its device, and what contexts read of it.

Source: OpKernel in TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.node_properties import Arg, OfNode
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.proto import NodeDef
from opkernel.records import replace
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.device.device import Device
    from opkernel.kernel.context.construction import OpKernelConstruction
    from opkernel.kernel.contract import KernelContract


class KernelFacts(OfNode):
    """A kernel, but for what it computes.

    Args:
        construction: the node, device and services that the kernel is made from.
        custom_def: a node to go by instead of the graph's, for kernels that rewrite theirs.
        is_deferred: the kernel's work goes on after `compute` has returned.

    Attributes:
        forwards_inputs: The claim of that name in the contracts of all kernels of the class.
        contract: The claims of the kernel.
        node_traceback: Tells where the node was defined, if that is known.
    """

    forwards_inputs: ClassVar[bool] = False
    node_traceback: Callable[[], Any] | None = None

    def __init__(
        self,
        construction: OpKernelConstruction,
        *,
        custom_def: NodeDef | None = None,
        is_deferred: bool = False,
    ) -> None:
        self.properties = construction.properties
        if custom_def is not None:
            self.properties = replace(self.properties, node_def=custom_def)
        self.device: Device = construction.device
        self.input_memory_types: tuple[MemoryType, ...] = construction.input_memory_types
        self.output_memory_types: tuple[MemoryType, ...] = construction.output_memory_types
        self.graph_def_version = construction.graph_def_version
        self.contract: KernelContract = construction.contract
        if self.forwards_inputs and not self.contract.forwards_inputs:
            self.contract = replace(self.contract, forwards_inputs=True)
        self.is_deferred = is_deferred
        self.num_inputs = len(self.properties.input_types)
        self.num_outputs = len(self.properties.output_types)
        self.output_dtypes = _numpy_dtypes(self.properties.output_types)
        self.unset_outputs = _unset_outputs(self.num_outputs)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.properties.node_def.name

    @property
    def type_string(self) -> str:
        """The op's name."""
        return self.properties.node_def.op

    @property
    def requested_device(self) -> str:
        """The device that the node asks for; may be partial or empty."""
        return self.properties.node_def.device

    def requested_input(self, index: int) -> str:
        """The name of the input at `index` as the node gives it."""
        return self.properties.node_def.input[index]

    def input_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the input argument `name` in the flat list of inputs."""
        return _range(self, name, self.properties.input_args, "input")

    def output_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the output argument `name` in the flat list of outputs."""
        return _range(self, name, self.properties.output_args, "output")


@lru_cache
def _numpy_dtypes(types: tuple[DataType, ...]) -> tuple[np.dtype[Any], ...]:
    return tuple([dtype.base.numpy_dtype for dtype in types])


@lru_cache
def _unset_outputs(count: int) -> tuple[None, ...]:
    return (None,) * count


def _range(kernel: KernelFacts, name: str, args: tuple[Arg, ...], what: str) -> tuple[int, int]:
    for arg in args:
        if arg.name == name:
            return arg.start, arg.stop
    raise InvalidArgumentError(
        f"{kernel.type_string}: unknown {what} name {name!r}; "
        f"has {[arg.name for arg in args]} (node {kernel.name!r})",
        node=kernel.name,
        op=kernel.type_string,
    )
