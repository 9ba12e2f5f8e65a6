"""Models behind HTTP, as TensorFlow Serving has them: `opkernel serve` (extra `opkernel[serve]`).

Only `application` and `metrics` import the libraries of the extra.

Source: TensorFlow Serving model_servers/http_rest_api_handler.cc, util/json_tensor.cc.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
