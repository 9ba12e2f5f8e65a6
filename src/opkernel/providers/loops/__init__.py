"""`loops`: kernels whose algorithm is a loop, in plain Python over arrays, which Numba compiles (extra `opkernel[numba]`).

`loop` makes such a function. The modules beside it have the loops, a module for a topic, and register the kernels of
`opkernel.ops` with a loop in the place of a function of NumPy. `docs/loops.md` shows how to write one.
"""

from opkernel.providers.loops.compiled_loop import Form, Loop, loop, loops_run, part_of_loops

__all__ = ["Form", "Loop", "loop", "loops_run", "part_of_loops"]
