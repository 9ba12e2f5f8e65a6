"""Ops that give a dataset: one kernel, which makes a DatasetBase of what a DatasetNode tells.

Source: DatasetOpKernel, UnaryDatasetOpKernel and ParseScalarArgument in TensorFlow core/framework/dataset.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import OpHandle, TypeInferenceFn, register_op_def
from opkernel.ops.data.captured_function import CapturedFunction
from opkernel.ops.data.dataset import DatasetBase, dataset_of
from opkernel.ops.data.shape_functions import DATA_SHAPE_FNS
from opkernel.ops.declared import tensorflow_op_defs
from opkernel.ops.function_ops import CalledFunction
from opkernel.ops.registration import register_kernel
from opkernel.proto import NodeDef
from opkernel.types import DataType, PartialTensorShape, object_scalar

_D = TypeVar("_D", bound="Callable[[DatasetNode], DatasetBase]")


def declare(
    name: str,
    *,
    doc: str,
    traits: str = "",
    forward_type_fn: TypeInferenceFn | None = None,
    reverse_type_fn: tuple[int, TypeInferenceFn | None] = (0, None),
) -> OpHandle:
    """Declare an op of TensorFlow's by its OpDef, with its shape function."""
    return register_op_def(
        tensorflow_op_defs()[name],
        shape_fn=DATA_SHAPE_FNS[name],
        doc=doc,
        forward_type_fn=forward_type_fn,
        reverse_type_fn=reverse_type_fn,
        traits=traits,
    )


class MadeBy(NamedTuple):
    """The node that made a dataset.

    Attributes:
        node: The node.
        inputs: Its inputs.
        input_names: The input of the op that each belongs to.
        input_types: Their types.
        library: Has the functions of its attrs.
        permissions: Which files the node could read and write.
    """

    node: NodeDef
    inputs: Sequence[Any]
    input_names: Sequence[str]
    input_types: Sequence[DataType]
    library: Any
    permissions: Permissions


class KernelOfDatasets(OpKernel):
    """A kernel that makes datasets, or calls functions of their elements.

    Attributes:
        functions: The functions of attrs, by attr.
        has_functions: Whether attrs name functions, or lists of functions.
    """

    forwards_inputs = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._construction = construction
        self._attrs: dict[str, Any] = {}
        self.has_functions = any(
            attr.type.endswith("func)") or attr.type == "func" for attr in construction.op_def.attr
        )
        self.functions = {
            attr.name: CalledFunction(self.attr(attr.name))
            for attr in construction.op_def.attr
            if attr.type == "func"
        }

    def attr(self, name: str) -> Any:
        """The value of an attr."""
        if name not in self._attrs:
            self._attrs[name] = self._construction.get_attr(name)
        return self._attrs[name]

    def has_attr(self, name: str) -> bool:
        """Whether the op has an attr."""
        return self._construction.has_attr(name)


class DatasetOp(KernelOfDatasets):
    """Gives a dataset of one class."""

    def __init__(
        self, construction: OpKernelConstruction, make: Callable[[DatasetNode], DatasetBase]
    ) -> None:
        super().__init__(construction)
        self._make = make

    def compute(self, ctx: OpKernelContext) -> None:
        """Make the dataset."""
        node = DatasetNode(self, ctx)
        dataset = self._make(node)
        dataset.made_by = node.made_by
        ctx.set_output(0, object_scalar(dataset))


class DatasetNode:
    """What a dataset is made of: the attrs and inputs of its node."""

    def __init__(self, kernel: KernelOfDatasets, ctx: OpKernelContext) -> None:
        self._kernel, self._ctx = kernel, ctx
        self._own: dict[int, Any] = {}
        self.op = kernel.type_string

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attr; `default` where the op has no such attr."""
        return self._kernel.attr(name) if self._kernel.has_attr(name) else default

    def has_input(self, name: str) -> bool:
        """Whether the op has an input of this name."""
        return any(arg.name == name for arg in self._kernel.properties.input_args)

    def tensor(self, name: str) -> Any:
        """An input, which the dataset may keep; it is read-only."""
        return self._kept(*self._kernel.input_range(name))[0]

    def tensors(self, name: str) -> list[Any]:
        """The tensors of an input that is a list, which the dataset may keep; they are read-only."""
        return self._kept(*self._kernel.input_range(name))

    def _kept(self, start: int, stop: int) -> list[Any]:
        for index in range(start, stop):
            if index not in self._own:
                self._own[index] = self._ctx.own_input(index)
                self._own[index].setflags(write=False)
        return [self._own[index] for index in range(start, stop)]

    @property
    def made_by(self) -> MadeBy:
        """What the dataset remembers of its node."""
        kernel, given = self._kernel, self._ctx.inputs
        names = [name for name, count in _input_counts(kernel) for _ in range(count)]
        inputs = [self._own[i] if i in self._own else np.copy(given[i]) for i in range(len(given))]
        library = self._ctx.function_library if kernel.has_functions else None
        types = kernel.input_types
        return MadeBy(kernel.node_def, inputs, names, types, library, self.permissions)

    def scalar(self, name: str) -> Any:
        """The Python value of an input: an int, float, bool or bytes.

        Raises:
            InvalidArgumentError: it is no scalar.
        """
        value = self._ctx.input(name)
        if value.ndim:
            raise InvalidArgumentError(f"{name} must be a scalar")
        return value.item()

    def vector(self, name: str) -> list[Any]:
        """The Python values of an input that is a vector.

        Raises:
            InvalidArgumentError: it is no vector.
        """
        value = self._ctx.input(name)
        if value.ndim != 1:
            raise InvalidArgumentError(f"{name} must be a vector")
        values: list[Any] = value.tolist()
        return values

    def dataset(self, name: str = "input_dataset") -> DatasetBase:
        """The dataset of an input."""
        return dataset_of(self._ctx.input(name))

    def datasets(self, name: str) -> list[DatasetBase]:
        """The datasets of an input that is a list."""
        start, stop = self._kernel.input_range(name)
        return [dataset_of(tensor) for tensor in self._ctx.inputs[start:stop]]

    def function(
        self,
        attr: str,
        captured: str,
        takes: Sequence[DataType],
        gives: Sequence[DataType] | None = None,
    ) -> CapturedFunction:
        """The function of an attr, with the tensors of an input as its last arguments.

        Args:
            attr: The attr.
            captured: The input.
            takes: The types of the arguments before the captured tensors.
            gives: The types of the results; None for any.

        Raises:
            InvalidArgumentError: the function takes or gives other types.
            NotFoundError: there is no such function.
        """
        library, handle = self._kernel.functions[attr].found(self._ctx)
        is_stateful = library.is_stateful(self._kernel.attr(attr).name)
        tensors = self.tensors(captured)
        return CapturedFunction(handle, tensors, takes, gives, what=attr, is_stateful=is_stateful)

    def functions(self, attr: str) -> list[CalledFunction]:
        """The functions of an attr that is a list."""
        return [CalledFunction(function) for function in self._kernel.attr(attr)]

    @property
    def permissions(self) -> Permissions:
        """Which files it may read and write."""
        return self._ctx.permissions

    @property
    def context(self) -> OpKernelContext:
        """The computation, for the few that look up resources."""
        return self._ctx

    @property
    def dtypes(self) -> list[DataType]:
        """The attr `output_types`."""
        types: list[DataType] = self._kernel.attr("output_types")
        return types

    @property
    def shapes(self) -> list[PartialTensorShape]:
        """The attr `output_shapes`.

        Raises:
            InvalidArgumentError: there are not as many as `output_types`.
        """
        shapes: list[PartialTensorShape] = self._kernel.attr("output_shapes")
        if len(shapes) != len(self.dtypes):
            raise InvalidArgumentError(
                f"output_types and output_shapes must be of the same length, not "
                f"{len(self.dtypes)} and {len(shapes)}"
            )
        return shapes


def _input_counts(kernel: OpKernel) -> Iterator[tuple[str, int]]:
    for arg in kernel.properties.input_args:
        start, stop = kernel.input_range(arg.name)
        yield arg.name, stop - start


class _DatasetKernels:
    """Makes the kernels of ops that give datasets of one class."""

    def __init__(self, make: Callable[[DatasetNode], DatasetBase]) -> None:
        self._make = make

    def create(self, construction: OpKernelConstruction) -> DatasetOp:
        """The kernel of a node."""
        return DatasetOp(construction, self._make)


def dataset_op(
    *names: str,
    doc: str,
    traits: str = "",
    types: Mapping[str, Sequence[DataType]] | None = None,
    forward_type_fns: Mapping[str, TypeInferenceFn] = MappingProxyType({}),
) -> Callable[[_D], _D]:
    """Declare ops, and register the kernel that gives a dataset of the decorated class or function.

    Args:
        names: The ops; they have the same inputs and attrs as far as the class asks for them.
        doc: What they give.
        traits: The traits of the ops.
        types: The types that the kernel takes.
        forward_type_fns: Functions that infer the full types of outputs, by op.
    """
    for name in names:
        declare(name, doc=doc, traits=traits, forward_type_fn=forward_type_fns.get(name))

    def register(dataset_type: _D) -> _D:
        register_dataset(*names, make=dataset_type, types=types)
        return dataset_type

    return register


def register_dataset(
    *names: str,
    make: Callable[[DatasetNode], DatasetBase],
    types: Mapping[str, Sequence[DataType]] | None = None,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel that gives a dataset.

    Args:
        names: The ops, which are declared.
        make: Makes the dataset: its class, or a function.
        types: The types that the kernel takes.
        registry: Where to register it; with the reference kernels if None.
    """
    kernels: Any = _DatasetKernels(make)
    register_kernel(*names, types=types, registry=registry)(kernels)
