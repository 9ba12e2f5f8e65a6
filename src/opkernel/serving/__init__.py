"""Models behind HTTP, as TensorFlow Serving has them: `opkernel serve` (extra `opkernel[serve]`).

`application` imports the libraries of the extra when it is called.

Source: TensorFlow Serving model_servers/http_rest_api_handler.cc, util/json_tensor.cc.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
