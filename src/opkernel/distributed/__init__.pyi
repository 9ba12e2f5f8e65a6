from opkernel.distributed.batches.prediction import Predictions as Predictions
from opkernel.distributed.batches.prediction import predict as predict
from opkernel.distributed.cluster.cluster import Cluster as Cluster
from opkernel.distributed.cluster.cluster import LocalCluster as LocalCluster
from opkernel.distributed.cluster.cluster_spec import ClusterSpec as ClusterSpec
from opkernel.distributed.cluster.cluster_spec import TaskName as TaskName
from opkernel.distributed.cluster.ray_cluster import RayCluster as RayCluster
from opkernel.distributed.coordination.coordination_service_agent import (
    CoordinationServiceAgent as CoordinationServiceAgent,
)
from opkernel.distributed.coordination.coordination_state import (
    CoordinatedTaskState as CoordinatedTaskState,
)
from opkernel.distributed.coordination.coordination_state import (
    CoordinationConfig as CoordinationConfig,
)
from opkernel.distributed.coordination.coordination_state import TaskStateInfo as TaskStateInfo
from opkernel.distributed.serving import ServedModels as ServedModels
from opkernel.distributed.serving import serve as serve
from opkernel.distributed.training import Saver as Saver
from opkernel.distributed.training import (
    replica_device_setter as replica_device_setter,
)
from opkernel.distributed.training import resume as resume

__all__: list[str]
