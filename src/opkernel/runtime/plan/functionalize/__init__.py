"""Raising: control flow of TensorFlow 1 as a program of statements, conditionals and loops.

Switch, Merge, Enter, Exit and their like say when a value exists; a program says when to run an
operation. `contexts` finds the branches that an operation is on, and `loops` the facts that a `while`
statement needs of a loop. `schedule` orders the operations of one loop, and `arrange` makes the tree. A
graph without such a form is left to the dataflow executor, as a whole.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
