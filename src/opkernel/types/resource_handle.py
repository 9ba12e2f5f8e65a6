"""The content of a resource tensor: the name of a resource, not the resource.

Source: TensorFlow core/framework/resource_handle.{h,proto}.
"""

from typing import NamedTuple

from opkernel.proto import ResourceHandleProto
from opkernel.records import dataclass, field
from opkernel.types.dtype import DataType
from opkernel.types.shape import PartialTensorShape


class DtypeAndShape(NamedTuple):
    """A resource's description of a tensor that it holds."""

    dtype: DataType
    shape: PartialTensorShape


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """Names a resource on a device; an element of a tensor of type DT_RESOURCE.

    Attributes:
        device: The device that the resource lives on.
        container: The container that holds it.
        name: Its name there.
        hash_code: The code of its type; 0 where unknown.
        maybe_type_name: A name of its type for people to read.
        dtypes_and_shapes: The tensors that it holds, if that is known.
        resource: The resource itself where the handle owns it. It takes no part in comparisons
            and is not written to protos.
    """

    device: str = ""
    container: str = ""
    name: str = ""
    hash_code: int = 0
    maybe_type_name: str = ""
    dtypes_and_shapes: tuple[DtypeAndShape, ...] = ()
    resource: object = field(default=None, compare=False, repr=False)

    @classmethod
    def from_proto(cls, proto: ResourceHandleProto) -> "ResourceHandle":
        """The handle of a ResourceHandleProto.

        Raises:
            InvalidArgumentError: a dtype or shape in it is invalid.
        """
        return cls(
            proto.device,
            proto.container,
            proto.name,
            proto.hash_code,
            proto.maybe_type_name,
            tuple(
                DtypeAndShape(DataType(entry.dtype), PartialTensorShape.from_proto(entry.shape))
                for entry in proto.dtypes_and_shapes
            ),
        )

    def to_proto(self) -> ResourceHandleProto:
        """The handle as a ResourceHandleProto."""
        return ResourceHandleProto(
            device=self.device,
            container=self.container,
            name=self.name,
            hash_code=self.hash_code,
            maybe_type_name=self.maybe_type_name,
            dtypes_and_shapes=[
                ResourceHandleProto.DtypeAndShape(dtype=entry.dtype, shape=entry.shape.to_proto())
                for entry in self.dtypes_and_shapes
            ],
        )

    @property
    def is_ref_counting(self) -> bool:
        """Whether the handle owns the resource; otherwise it only names it."""
        return self.resource is not None

    def summarize_value(self) -> str:
        """The handle as summaries of tensors show it."""
        return (
            f'ResourceHandle(name="{self.name}", device="{self.device}", '
            f'container="{self.container}", type="{self.maybe_type_name}", '
            f'dtype and shapes : "[ {self._dtypes_and_shapes_text()} ]")'
        )

    def debug_string(self) -> str:
        """The handle as log lines show it."""
        return (
            f"device: {self.device} container: {self.container} name: {self.name} "
            f"hash_code: {self.hash_code:#x} maybe_type_name {self.maybe_type_name}, "
            f"dtype and shapes : [ {self._dtypes_and_shapes_text()} ]"
        )

    def _dtypes_and_shapes_text(self) -> str:
        return ",".join(
            f"DType enum: {int(entry.dtype)}, Shape: {entry.shape}"
            for entry in self.dtypes_and_shapes
        )
