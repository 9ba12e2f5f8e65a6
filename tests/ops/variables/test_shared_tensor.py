"""Readers on other threads never see a change that is under way."""

import threading
from typing import Any

import numpy as np

from opkernel import Graph, Session, raw_ops
from opkernel.types import float32

SIZE = 50_000


def test_a_reader_sees_all_of_a_change_or_nothing() -> None:
    with Graph().as_default() as graph:
        v = raw_ops.VarHandleOp(dtype=float32, shape=[SIZE], shared_name="v")
        assign = raw_ops.AssignVariableOp(resource=v, value=np.zeros(SIZE, np.float32))
        add = raw_ops.AssignAddVariableOp(resource=v, value=np.ones(SIZE, np.float32))
        value = raw_ops.ReadVariableOp(resource=v, dtype=float32)
    torn: list[Any] = []
    with Session(graph) as session:
        session.run(assign)
        change, read = session.make_callable(add), session.make_callable(value)

        def check() -> None:
            for _ in range(100):
                seen = read()
                if seen.min() != seen.max():
                    torn.append(seen)

        readers = [threading.Thread(target=check) for _ in range(2)]
        for reader in readers:
            reader.start()
        for _ in range(100):
            change()
        for reader in readers:
            reader.join()
        assert read().tolist() == [100] * SIZE
    assert not torn
