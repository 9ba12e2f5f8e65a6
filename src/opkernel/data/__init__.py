"""Input pipelines: `Dataset`, with TensorFlow's methods, over the ops on datasets.

Source: TensorFlow python/data/ops.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
