"""Gradients through calls of functions that take or give other tensors than the node says."""

import pytest
from tests.runtime.call_models import CALLS, WRONG, code_of, imported, may_be, model

from opkernel import gradients


@pytest.mark.parametrize("called", [name for name in CALLS if name != "RemoteCall"])
def test_they_are_refused(called: str) -> None:
    for wrong in WRONG:
        graph = imported(model(called, wrong))
        x, y = (graph.get_tensor_by_name(name) for name in ("x:0", "call:0"))
        if not may_be(called, wrong):
            with graph.as_default(), pytest.raises(code_of(called, wrong), match="'Wrong'"):
                gradients([y], [x])
