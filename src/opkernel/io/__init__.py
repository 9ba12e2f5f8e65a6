"""Records from Python: TFRecord files, and Example messages from NumPy values. The record format stands here.

Source: TensorFlow tsl/lib/io, python/lib/io/tf_record.py, core/util/events_writer.cc.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
