"""Raising: control flow of TensorFlow 1 as a program of statements, conditionals and loops.

Switch, Merge, Enter, Exit and their like say for each value when it is there; a program says what
is run when. `contexts` are the branches that an operation is on, `loops` what a `while` statement
needs to know of a loop, `schedule` the order of what stands in one loop, `arrange` makes the tree.
What has no such form is left to the dataflow executor, whole graphs at a time.
"""

from opkernel.runtime.raising.arrange import Arrangement, arrange
from opkernel.runtime.raising.contexts import ALWAYS, Context, Predicate
from opkernel.runtime.raising.flow import Key, key_of, keys_of_inputs
from opkernel.runtime.raising.items import (
    Choose,
    Conditional,
    FirstAlive,
    Item,
    Loop,
    NotRaisedError,
    Variable,
)

__all__ = [
    "ALWAYS",
    "Arrangement",
    "Choose",
    "Conditional",
    "Context",
    "FirstAlive",
    "Item",
    "Key",
    "Loop",
    "NotRaisedError",
    "Predicate",
    "Variable",
    "arrange",
    "key_of",
    "keys_of_inputs",
]
