from opkernel.runtime.engines.engine import ClusterArgument as ClusterArgument
from opkernel.runtime.engines.engine import ClusterNodes as ClusterNodes
from opkernel.runtime.engines.engine import Clusters as Clusters
from opkernel.runtime.engines.engine import CompiledCluster as CompiledCluster
from opkernel.runtime.engines.engine import Engine as Engine
from opkernel.runtime.engines.engine import MeasuringCluster as MeasuringCluster
from opkernel.runtime.engines.engine import OperationTime as OperationTime
from opkernel.runtime.engines.engine import ResourceUpdate as ResourceUpdate
from opkernel.runtime.engines.engine import clusters_of as clusters_of
from opkernel.runtime.engines.engine import engine_named as engine_named
from opkernel.runtime.engines.engine import register_engine as register_engine
from opkernel.runtime.engines.engine import registered_engines as registered_engines

__all__: list[str]
