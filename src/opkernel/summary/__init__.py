"""Event files for TensorBoard: written from Python as with `tf.summary`, and read.

Source: TensorFlow python/ops/summary_ops_v2.py, python/summary; TensorBoard plugins/*/summary_v2.py.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
