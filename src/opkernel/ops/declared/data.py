"""Shapes of ops on datasets that have no kernel: for peers in other processes, and the like."""

from opkernel.opdef import OpShapeInferenceFn
from opkernel.ops.data.shape_functions import DATA_SHAPE_FNS

_OPS = """
DataServiceDataset DataServiceDatasetV2 DataServiceDatasetV3 DataServiceDatasetV4
ExperimentalLMDBDataset ExperimentalMapDataset FilterByLastComponentDataset
IteratorGetModelProto LMDBDataset RegisterDataset RegisterDatasetV2
"""

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {name: DATA_SHAPE_FNS[name] for name in _OPS.split()}
