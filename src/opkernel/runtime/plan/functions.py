"""The functions of a plan: one, as long as that is neither too long nor nested too deeply."""

from collections.abc import Iterator
from itertools import chain

from opkernel.runtime.plan.tree import Block, PlanFunction, PlanTree, Statement, blocks_of

LINES_A_PART = 1200  # compiling time and memory grow faster than linearly beyond
MAX_DEPTH = 10  # of blocks in one function: Python allows 20 loops


def plan_functions(plan: PlanTree) -> list[PlanFunction]:
    """The functions that run a plan; the last, `plan`, is the one to call."""
    if _size(plan.block) <= LINES_A_PART and _depth(plan.block) <= MAX_DEPTH:
        return [plan]
    from opkernel.runtime.plan.parts import cut  # most plans are short

    return cut(plan)


def _size(block: Block) -> int:
    """How many statements there are in a block."""
    return len(block) + sum(map(_size, inner_blocks(block)))


def _depth(block: Block) -> int:
    """How deeply blocks are nested, this one included."""
    return 1 + max(map(_depth, inner_blocks(block)), default=0)


def inner_blocks(block: Block) -> Iterator[Block]:
    """The blocks in the items of a block."""
    return chain.from_iterable(blocks_of(i) for i in block if not isinstance(i, Statement))
