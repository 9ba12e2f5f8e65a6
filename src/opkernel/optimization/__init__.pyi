from opkernel.graph.edit.graph_editor import Change as Change
from opkernel.graph.edit.graph_editor import GraphEditor as GraphEditor
from opkernel.optimization.functions import optimize_functions as optimize_functions
from opkernel.optimization.optimize import Grouping as Grouping
from opkernel.optimization.optimize import OptimizationPass as OptimizationPass
from opkernel.optimization.optimize import OptimizationPassRegistry as OptimizationPassRegistry
from opkernel.optimization.optimize import OptimizedGraph as OptimizedGraph
from opkernel.optimization.optimize import copy_to_optimize as copy_to_optimize
from opkernel.optimization.optimize import optimization_passes as optimization_passes
from opkernel.optimization.optimize import optimize_graph as optimize_graph
from opkernel.optimization.optimize import register_optimization as register_optimization

__all__: list[str]
