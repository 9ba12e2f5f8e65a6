"""Versions of GraphDefs: which of them can be read here.

Source: TensorFlow core/framework/versions.cc, core/public/version.h.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_PRODUCER
from opkernel.proto import VersionDef

FORWARD_COMPATIBLE_VERSIONS = 21
"""Graphs of producers newer than ours by more than this need not be readable."""

_READER = "TensorFlow 2.21.0"


def check_versions(versions: VersionDef) -> None:
    """Check that a graph with these versions can be read here.

    Raises:
        InvalidArgumentError: the producer is too old, or the graph excludes this consumer.
    """
    if versions.producer < GRAPH_DEF_VERSION_MIN_PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef producer version {versions.producer} below min producer {GRAPH_DEF_VERSION_MIN_PRODUCER} "
            f"supported by {_READER}.  Please regenerate your graph."
        )
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise InvalidArgumentError(
            f"GraphDef min consumer version {versions.min_consumer} above current version "
            f"{GRAPH_DEF_VERSION} for {_READER}.  Please upgrade TensorFlow."
        )
    if GRAPH_DEF_VERSION in versions.bad_consumers:
        raise InvalidArgumentError(
            f"GraphDef disallows consumer version {GRAPH_DEF_VERSION}.  Please upgrade "
            f"TensorFlow: this version is likely buggy."
        )


def merge_versions(own: VersionDef, imported: VersionDef) -> VersionDef:
    """The versions of a graph after another one was imported into it."""
    return VersionDef(
        producer=min(own.producer, imported.producer),
        min_consumer=max(own.min_consumer, imported.min_consumer),
        bad_consumers=sorted({*own.bad_consumers, *imported.bad_consumers}),
    )
