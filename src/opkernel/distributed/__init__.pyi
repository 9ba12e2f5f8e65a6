from opkernel.distributed.prediction import Predictions as Predictions
from opkernel.distributed.prediction import predict as predict

__all__: list[str]
