"""What goes beyond one process: graphs on the tasks of a cluster, models mapped over data sets.

Source: TensorFlow core/distributed_runtime, python/training.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
