"""Effects are the same whatever executes a graph, and whichever passes run: as many, in the same order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.effects.random_programs import Outcome, RandomProgram, drawn, seeded

import opkernel
from opkernel.graph.edit.effect_order import EffectOrder
from opkernel.optimization import optimization_passes

PASSES = sorted(one.name for one in optimization_passes() if one.name != "debug_stripper")
"""All passes but the one that is there to leave out Assert and Print."""
WAYS: list[tuple[Any, str]] = [
    (False, ""),
    (True, ""),
    (True, "DATAFLOW"),
    *(({name}, "") for name in PASSES),
]


def differences(program: RandomProgram) -> list[tuple[Any, str]]:
    """The passes and executors with which something else happens than by dataflow without passes."""
    expected = program.run(False, "DATAFLOW")
    return [way for way in WAYS if program.run(*way) != expected]


@given(st.data())
@settings(max_examples=20)
def test_effects_and_state_are_those_of_dataflow(data: st.DataObject) -> None:
    assert differences(drawn(data)) == []


@pytest.mark.parametrize("seed", range(2))
def test_larger_programs(seed: int) -> None:
    assert differences(seeded(seed, 40)) == []


@given(st.data())
@settings(max_examples=10)
def test_steps_that_can_be_stopped_do_the_same(data: st.DataObject) -> None:
    program = drawn(data)
    expected = program.run(False, "DATAFLOW")
    config = opkernel.SessionConfig(operation_timeout_in_ms=60000)
    for executor in ("", "DATAFLOW"):
        assert program.run(True, executor, config=config) == expected


def test_programs_have_effects_of_all_kinds() -> None:
    """What is compared is worth it."""
    found: set[str] = set()
    outcomes: list[Outcome] = []
    for seed in range(40):
        program = seeded(seed)
        definitions = program.b.graph.function_library.values()
        found |= {op.type for op in program.b.graph.get_operations()}
        found |= {node.op for function in definitions for node in function.node_def}
        outcomes.append(program.run(True))
    assert sum(len(notes) for one in outcomes for notes in one.traces.values()) > 200
    assert any(isinstance(value, type) for one in outcomes for value in one.values)
    assert found >= {
        "EffectsCount", "AssignAddVariableOp", "AssignAdd", "QueueDequeueV2", "StackPopV2", "Assert",
        "PrintV2", "TensorListPopBack", "StatefulPartitionedCall", "PartitionedCall", "If", "Case",
        "While", "Switch", "Merge", "Exit",
    }  # fmt: skip


def test_a_pass_that_loses_effects_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EffectOrder, "keep", lambda _self, order, _dropped=(): order)
    assert any(differences(seeded(seed, 30)) for seed in (11, 19, *range(20)))
