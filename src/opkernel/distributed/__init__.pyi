from opkernel.distributed.cluster.cluster import Cluster as Cluster
from opkernel.distributed.cluster.cluster_spec import ClusterSpec as ClusterSpec
from opkernel.distributed.cluster.local_cluster import LocalCluster as LocalCluster
from opkernel.distributed.cluster.ray_cluster import RayCluster as RayCluster
from opkernel.distributed.cluster.task_name import TaskName as TaskName
from opkernel.distributed.prediction import Predictions as Predictions
from opkernel.distributed.prediction import predict as predict

__all__: list[str]
