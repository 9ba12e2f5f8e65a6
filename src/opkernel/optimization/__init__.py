"""Optimisation: passes that edit a graph so that it computes the same with less work."""

from opkernel.optimization.function_bodies import optimize_functions
from opkernel.optimization.graph_editor import Change, GraphEditor
from opkernel.optimization.optimize import OptimizedGraph, optimize_graph
from opkernel.optimization.pass_registry import (
    Grouping,
    OptimizationPass,
    OptimizationPassRegistry,
    optimization_passes,
    register_optimization,
)

__all__ = [
    "Change",
    "GraphEditor",
    "Grouping",
    "OptimizationPass",
    "OptimizationPassRegistry",
    "OptimizedGraph",
    "optimization_passes",
    "optimize_functions",
    "optimize_graph",
    "register_optimization",
]
