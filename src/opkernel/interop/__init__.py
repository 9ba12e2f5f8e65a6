"""Models that others made: SavedModels, MetaGraph files and archives of them, loaded and saved.

Source: TensorFlow python/saved_model, cc/saved_model.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
