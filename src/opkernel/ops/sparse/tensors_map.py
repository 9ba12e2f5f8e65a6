"""Sparse tensors that a resource keeps by number, until they are taken.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_tensors_map_ops.cc.
"""

import itertools
import threading

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    ContainerInfo,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
)
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_vector
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.serialize import SparseParts, check_parts_of, rows_of, stacked
from opkernel.ops.sparse.tensors import check_sparse
from opkernel.ops.step_resources import kept, resource_manager
from opkernel.types import DataType

_INPUTS = ["sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"]
_NAMES = ["container: string = ''", "shared_name: string = ''"]

register_op(
    "AddSparseToTensorsMap",
    inputs=_INPUTS,
    outputs=["sparse_handle: int64"],
    attrs=["T: type", *_NAMES],
    shape_fn=shape_rule("[?, ?], [?], [?] -> []"),
    is_stateful=True,
    doc="Has the map of that name keep a sparse tensor; the output is its number.",
)
register_op(
    "AddManySparseToTensorsMap",
    inputs=_INPUTS,
    outputs=["sparse_handles: int64"],
    attrs=["T: type", *_NAMES],
    shape_fn=shape_rule("[?, ?], [?], [?] -> [?]"),
    is_stateful=True,
    doc="Has the map of that name keep each row of a sparse tensor; the output are their numbers.",
)
register_op(
    "TakeManySparseFromTensorsMap",
    inputs=["sparse_handles: int64"],
    outputs=["sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"],
    attrs=["dtype: type", *_NAMES],
    shape_fn=shape_rule("[?] -> [?, ?], [?], [?]"),
    is_stateful=True,
    doc="Takes sparse tensors from the map of that name: one sparse tensor of all, row by row.",
)


class SparseTensorsMap(ResourceBase):
    """Sparse tensors by number; used from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tensors: dict[int, tuple[SparseParts, DataType]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def debug_string(self) -> str:
        """The name."""
        return "A SparseTensorsMap"

    def add(self, parts: SparseParts, dtype: DataType) -> int:
        """Keep a sparse tensor, whose number is the result."""
        own = SparseParts(*(kept(np.array(tensor)) for tensor in parts))
        with self._lock:
            number = next(self._numbers)
            self._tensors[number] = own, dtype
        return number

    def take(self, numbers: list[int]) -> list[tuple[SparseParts, DataType]]:
        """The sparse tensors of these numbers, which it no longer keeps.

        Raises:
            InvalidArgumentError: there is none of a number.
        """
        found = []
        with self._lock:
            for number in numbers:
                if number not in self._tensors:
                    raise InvalidArgumentError(
                        f"Unable to find SparseTensor: {number} in map: {self._name}"
                    )
                found.append(self._tensors.pop(number))
        return found


class _MapKernel(OpKernel):
    """A kernel that uses the map of its shared name, which it makes where there is none."""

    use_node_name = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._lock = threading.Lock()
        self._info: ContainerInfo | None = None

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        """Compute with the map."""
        raise NotImplementedError

    def compute(self, ctx: OpKernelContext) -> None:
        with self._lock:
            if self._info is None:
                self._info = ContainerInfo.init(
                    resource_manager(ctx),
                    self.node_def,
                    use_node_name_as_default=self.use_node_name,
                )
        info = self._info
        with info.resource_manager.lookup_or_create(
            info.container, info.name, SparseTensorsMap, lambda: SparseTensorsMap(info.name)
        ) as tensors_map:
            self.use(ctx, tensors_map)


@register_kernel("AddSparseToTensorsMap")
class AddSparseToTensorsMap(_MapKernel):
    """Keeps a sparse tensor."""

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        parts = SparseParts(ctx.input(0), ctx.input(1), ctx.input(2))
        check_sparse(*parts)
        ctx.set_output(0, np.int64(tensors_map.add(parts, ctx.input_dtype(1))))


@register_kernel("AddManySparseToTensorsMap", types={"T": ALL})
class AddManySparseToTensorsMap(_MapKernel):
    """Keeps the rows of a sparse tensor."""

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        count, rows = rows_of(SparseParts(ctx.input(0), ctx.input(1), ctx.input(2)))
        handles = np.zeros(count, np.int64)
        for number, parts in in_time(rows):
            handles[number] = tensors_map.add(parts, ctx.input_dtype(1))
        ctx.set_output(0, handles)


@register_kernel("TakeManySparseFromTensorsMap", types={"dtype": ALL})
class TakeManySparseFromTensorsMap(_MapKernel):
    """Takes sparse tensors."""

    use_node_name = False

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        handles = ctx.input(0)
        require_vector(handles, "sparse_handles should be a vector but received shape {}")
        if not len(handles):
            raise InvalidArgumentError(
                "Must have at least 1 handle of a SparseTensor, but got none"
            )
        found = tensors_map.take(handles.tolist())
        for number, (parts, dtype) in enumerate(found):
            check_parts_of(parts, dtype, self.output_types[1], number)
        whole = stacked([parts for parts, _ in found], (len(found),), self.output_types[1])
        for index, tensor in enumerate(whole):
            ctx.set_output(index, tensor)
