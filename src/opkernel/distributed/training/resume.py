"""resume: training goes on after tasks have died.

Source: the recovery of TensorFlow python/training/session_manager.py (recover_session).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from opkernel.checkpoint import latest_checkpoint
from opkernel.distributed.cluster.master_session import MasterSession
from opkernel.distributed.training.saver import Saver
from opkernel.errors import NotFoundError
from opkernel.runtime import Session


def resume(
    session: Session,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    saver: Saver | None = None,
    init: Sequence[Any] | Any = (),
    timeout_s: float = 60.0,
) -> None:
    """Have a session go on after a step has ended with UNAVAILABLE or ABORTED.

        try:
            session.run(train)
        except (UnavailableError, AbortedError):
            opkernel.distributed.resume(session, "training")

    It waits until all tasks are there, registers the session's programs with them anew, and restores the
    variables. Variables that are in no checkpoint, queues and tables of a task that died are as after its start.

    Args:
        session: the session, on a cluster or not.
        checkpoint: the prefix of a checkpoint, or a directory, of which it is the latest; None restores nothing.
        saver: restores; where not given, that of the graph (see `Saver.of`).
        init: fetches that are run before: they initialise tables, say.
        timeout_s: how long tasks are waited for, in seconds.

    Raises:
        NotFoundError: there is no such checkpoint.
        UnavailableError: a task is still not there after that time.
    """
    if isinstance(session.target_session, MasterSession):
        session.target_session.renew(timeout_s)
    prefix = None if checkpoint is None else _prefix(os.fspath(checkpoint))
    if init:
        session.run(init)
    if prefix is not None:
        (saver or Saver.of(session.graph)).restore(session, prefix)


def _prefix(checkpoint: str) -> str:
    if not os.path.isdir(checkpoint):
        return checkpoint
    found = latest_checkpoint(checkpoint)
    if found is None:
        raise NotFoundError(f"There is no checkpoint in {checkpoint}")
    return found
