"""SavedModels as layers of Keras 3, on JAX, PyTorch and NumPy (extra `opkernel[keras]`).

Source: Keras src/export/tfsm_layer.py.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
