"""Shape functions that many ops share, and the pieces for making others.

Each is an `fn(c: InferenceContext) -> None` under TensorFlow's name, unless its docstring says
that it makes such a function or is a part of one.

Source: TensorFlow core/framework/common_shape_fns.h.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
