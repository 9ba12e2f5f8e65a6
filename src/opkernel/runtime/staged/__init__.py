"""Plans in stages: of graphs with branches that run on threads, if that pays, and of graphs with very many nodes.

A compiled plan runs node after node. Where two nodes take long and do not need each other, their branches may run side by
side. Only a trial tells whether that is faster: it depends on how much kernels leave of the processors and of the
interpreter's lock. So a `BranchingPlan` measures the nodes first, and `stages` forms branches from them. Then it measures these
branches one after the other and side by side. A graph whose expensive nodes form a chain gains nothing, and a short step
runs as it is.
"""
