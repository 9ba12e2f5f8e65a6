"""The campaign for engines: a process that a call ends is told, and what the documents do not list is a finding."""

import numpy as np
import pytest
from tools.campaigns import engines
from tools.campaigns.campaign import Finding
from tools.campaigns.engine_calls import sampled_calls, with_attrs, with_shapes
from tools.campaigns.engine_child import Answer, EngineChild, EngineCrash, different

pytest.importorskip("openvino")


def call_of(op):
    calls = (call for call in sampled_calls() if call.op == op)
    return next(
        call for call in calls if any(one.dtype == np.float32 for one in call.feeds.values())
    )


def test_a_call_that_ends_the_process_leaves_the_campaign_alone():
    child, call = EngineChild(), call_of("Sigmoid")
    with pytest.raises(EngineCrash, match="status 1"):
        child.ask("no such engine", call, [call.feeds])
    assert child.ask("openvino", call, [call.feeds]) == [Answer("alike")]
    child.close()


@pytest.mark.parametrize(
    ("answer", "is_finding"),
    [
        (Answer("alike"), False),
        (Answer("refused", "a shape"), False),
        (Answer("raised", "InternalError"), True),
        (Answer("differs", "0 for nan"), True),
    ],
)
@pytest.mark.parametrize("op", ["Sigmoid", "Relu"])
def test_what_is_a_finding(op, answer, is_finding, monkeypatch):
    """Relu of NaN is in the table of OpenVINO."""
    call = call_of(op)
    monkeypatch.setattr(engines._child, "ask", lambda *_, frozen: [answer])
    is_known = op == "Relu" and answer.word == "differs"
    if is_finding and not is_known:
        with pytest.raises(Finding, match=answer.detail):
            engines._checked("openvino", call, [("NaN", call.feeds)], is_frozen=False)
    else:
        found = engines._checked("openvino", call, [("NaN", call.feeds)], is_frozen=False)
        assert found == answer.word


def test_calls_are_made_smaller_and_changed():
    call = call_of("MatMul")
    smaller = with_shapes(call, "all sizes 1")
    assert smaller is not None
    first, second = smaller.feeds.values()
    assert (first.shape, second.shape) == ((1, 1), (1, 1))
    assert any("transpose_a" in told for told, _ in with_attrs(call))


@pytest.mark.parametrize(
    ("found", "wanted", "is_different"),
    [
        ([1.0, np.nan], [1.0001, np.nan], False),
        ([0.0], [1e-40], False),
        ([np.inf], [np.nan], True),
        ([1.0], [1.1], True),
        ([1e-7, 1.0], [0.0, 1.0], False),
        ([-0.0], [0.0], False),
    ],
)
def test_what_is_different(found, wanted, is_different):
    assert bool(different(np.float32(found), np.float32(wanted))) == is_different
