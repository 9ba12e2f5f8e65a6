"""AllocatorAttributes: the kind of memory that a tensor needs, beyond its device.

Source: TensorFlow core/framework/allocator.h.
"""

from __future__ import annotations

from opkernel.errors import InternalError
from opkernel.records import dataclass


@dataclass(frozen=True, slots=True)
class AllocatorAttributes:
    """Wishes that an allocator has to grant.

    Attributes:
        on_host: In the memory of the host, for every device.
        nic_compatible: Reachable by the network card.
        gpu_compatible: Of the host, and reachable by an accelerator.
        scope_id: Of a scoped allocator's region, if positive; 0 for any.
    """

    on_host: bool = False
    nic_compatible: bool = False
    gpu_compatible: bool = False
    scope_id: int = 0

    @property
    def value(self) -> int:
        """The wishes as TensorFlow's bits, the scope left out."""
        return self.on_host | self.nic_compatible << 1 | self.gpu_compatible << 2

    def merge(self, other: AllocatorAttributes) -> AllocatorAttributes:
        """Wishes for all that either wishes for.

        Raises:
            InternalError: both name a scope, and not the same.
        """
        if self.scope_id and other.scope_id and self.scope_id != other.scope_id:
            raise InternalError(
                "At least one scope_id should be zero to merge AllocatorAttributes but found "
                f"this.scope_id={self.scope_id} and other.scope_id={other.scope_id}"
            )
        return AllocatorAttributes(
            self.on_host or other.on_host,
            self.nic_compatible or other.nic_compatible,
            self.gpu_compatible or other.gpu_compatible,
            self.scope_id or other.scope_id,
        )

    def is_equal_or_less_restrictive_than(self, other: AllocatorAttributes) -> bool:
        """Whether memory that grants the other's wishes grants these; scopes do not count."""
        return self.value | other.value == other.value

    def debug_string(self) -> str:
        """The wishes in TensorFlow's words."""
        return (
            f"AllocatorAttributes(on_host={self.on_host:d} nic_compatible={self.nic_compatible:d} "
            f"gpu_compatible={self.gpu_compatible:d} value={self.value} scope_id={self.scope_id})"
        )
