from opkernel.runtime.placement.colocation import ColocationGraph as ColocationGraph
from opkernel.runtime.placement.partitioning import Partitioning as Partitioning

__all__: list[str]
