from opkernel.endpoints.table import endpoints

__getattr__, __dir__, __all__ = endpoints(__name__)
