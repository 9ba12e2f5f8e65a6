"""Branches of a graph on threads, if that pays.

A compiled plan runs node after node. Where nodes that do not need each other both take long, their
branches may run side by side; whether that is faster nobody can tell but by trying: it depends on what
kernels leave of the processors and of the interpreter's lock. So `BranchingPlan` measures: first the
nodes, of which `stages` makes branches, then these branches one after the other and side by side.
Graphs whose nodes with work are in a chain have nothing of this; a step that is short runs as it is.
"""
