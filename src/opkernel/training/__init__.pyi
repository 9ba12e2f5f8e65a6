from opkernel.training import lookup as lookup
from opkernel.training import optimizers as optimizers
from opkernel.training.checkpoint import Checkpoint as Checkpoint
from opkernel.training.module import Module as Module
from opkernel.training.variable import Variable as Variable
from opkernel.training.variable_gradients import value_and_grad as value_and_grad

__all__: list[str]
