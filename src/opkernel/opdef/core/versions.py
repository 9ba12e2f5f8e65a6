"""The versions of the GraphDef format that this package writes and reads."""

__all__ = ["GRAPH_DEF_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER"]

GRAPH_DEF_VERSION = 2474
"""The producer version written into graphs: TensorFlow 2.21's (TF_GRAPH_DEF_VERSION)."""

GRAPH_DEF_VERSION_MIN_PRODUCER = 0
"""The oldest producer whose graphs can be read."""

GRAPH_DEF_VERSION_MIN_CONSUMER = 0
"""The oldest consumer that may read the graphs written here."""
