import warnings

import pytest

from opkernel.errors import UnimplementedError
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    OpDefBuilder,
    check_op_deprecation,
)


def test_an_op_is_refused_from_its_version_on():
    op_def = OpDefBuilder("Old").deprecated(9, "Use New").finalize().op_def
    with pytest.raises(UnimplementedError) as caught:
        check_op_deprecation(op_def, 9)
    assert str(caught.value) == (
        "Op Old is not available in GraphDef version 9. It has been removed in version 9. Use New."
    )
    with pytest.warns(DeprecationWarning, match="cease to work in GraphDef version 9. Use New"):
        check_op_deprecation(op_def, 8)


def test_other_ops_pass_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_op_deprecation(OpDefBuilder("New").finalize().op_def, GRAPH_DEF_VERSION)


def test_graphs_are_those_of_tensorflow_2_21():
    assert GRAPH_DEF_VERSION == 2474
    assert (GRAPH_DEF_VERSION_MIN_PRODUCER, GRAPH_DEF_VERSION_MIN_CONSUMER) == (0, 0)
