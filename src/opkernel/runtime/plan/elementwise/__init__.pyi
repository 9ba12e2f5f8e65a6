from opkernel.runtime.plan.elementwise.groups import ElementwiseGroup as ElementwiseGroup
from opkernel.runtime.plan.elementwise.groups import find_groups as find_groups
from opkernel.runtime.plan.elementwise.pointwise import FEWEST as FEWEST
from opkernel.runtime.plan.elementwise.pointwise import PointwiseFunction as PointwiseFunction
from opkernel.runtime.plan.elementwise.pointwise import pointwise_function as pointwise_function
from opkernel.runtime.plan.elementwise.tiled import BIG as BIG
from opkernel.runtime.plan.elementwise.tiled import TiledFunction as TiledFunction
from opkernel.runtime.plan.elementwise.tiled import TiledNode as TiledNode

__all__: list[str]
