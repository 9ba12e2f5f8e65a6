"""Full types: the type of a tensor beyond its DataType, above all the contents of a variant.

A full type is a tree (FullTypeDef): TFT_DATASET[TFT_PRODUCT[TFT_TENSOR[TFT_INT32]]]. An op declares
those of its outputs through a type constructor (`types`), with the attrs for variables;
`specialize_type` fills them in for a node; type inference functions (`inference`) follow them from
node to node. The package stands for TensorFlow's namespace `full_type`.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
