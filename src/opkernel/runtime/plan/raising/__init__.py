"""Raising: control flow of TensorFlow 1 as a program of statements, conditionals and loops.

Switch, Merge, Enter, Exit and their like say for each value when it is there; a program says what
is run when. `contexts` are the branches that an operation is on, `loops` what a `while` statement
needs to know of a loop, `schedule` the order of what stands in one loop, `arrange` makes the tree.
What has no such form is left to the dataflow executor, whole graphs at a time.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
