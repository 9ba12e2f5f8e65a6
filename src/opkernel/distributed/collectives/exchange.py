"""Exchange: a member's part in the rounds in which the members of a group send each other tensors."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.collectives.algorithms import rounds
from opkernel.distributed.collectives.messages import Part, Resolution
from opkernel.distributed.collectives.object_store import ObjectStore
from opkernel.errors import OpError, as_op_error
from opkernel.kernel import CollectiveParams, CollectiveType

Send = Callable[[TaskName, Part], object]
"""Sends a part to the task of its receiver."""


class Exchange:
    """A member's part in an exchange; used from any thread. Nothing is sent under a lock.

    Args:
        resolution: The members, and which of them this is.
        params: The collective.
        tensor: What this member brings; None where it only receives.
        store: Where parts are shared.
        send: Sends a part to a task.
        done: Called once, with an error or None, and the result.
    """

    def __init__(
        self,
        resolution: Resolution,
        params: CollectiveParams,
        tensor: Any,
        store: ObjectStore,
        send: Send,
        done: Callable[[OpError | None, Any], object],
    ) -> None:
        self.resolution = resolution
        self._rounds = rounds(params, tensor, len(resolution.places))
        self._senders = _senders(params, resolution)
        self._store = store
        self._send = send
        self._done = done
        self._lock = threading.Lock()
        self._round = 0
        self._received: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        self._is_advancing = True

    def start(self) -> None:
        """Send the parts of the first round."""
        self._advance(None)

    def receive(self, part: Part) -> None:
        """Take a part that another member has sent."""
        if part.error is not None:
            self._done(part.error, None)
            return
        with self._lock:
            self._received[part.round][part.sender] = part.value
            parts = self._complete_round()
        if parts is not None:
            self._advance(parts)

    def _complete_round(self) -> list[Any] | None:
        """The parts of the present round, once all are there and nobody works at it."""
        received = self._received[self._round]
        if self._is_advancing or len(received) < len(self._senders):
            return None
        self._is_advancing = True
        del self._received[self._round]
        self._round += 1
        return [received.get(rank) for rank in range(len(self.resolution.places))]

    def _advance(self, parts: Sequence[Any] | None) -> None:
        """Go on with the parts of a round, and with later rounds whose parts are there already."""
        try:
            while True:
                if parts is not None:
                    parts = self._store.fetch(parts)
                with np.errstate(all="ignore"):
                    outgoing = next(self._rounds) if parts is None else self._rounds.send(parts)
                self._send_to_others(outgoing)
                with self._lock:
                    own = self.resolution.rank
                    if outgoing[own] is not None:
                        self._received[self._round][own] = outgoing[own]
                    self._is_advancing = False
                    parts = self._complete_round()
                if parts is None:
                    return
        except StopIteration as stop:
            self._done(None, stop.value)
        except Exception as error:  # a merge op may raise anything
            failure = as_op_error(error)
            try:
                send_failure(self.resolution, failure, self._send)
            finally:
                self._done(failure, None)

    def _send_to_others(self, outgoing: Sequence[Any]) -> None:
        """Send each its part; one that is for several is shared once."""
        name, own, places = self.resolution.exchange, self.resolution.rank, self.resolution.places
        shared: dict[int, Any] = {}
        for rank, value in enumerate(outgoing):
            if rank != own and value is not None:
                if id(value) not in shared:
                    shared[id(value)] = self._store.share(value)
                place = places[rank]
                part = Part(name, place.incarnation, rank, own, self._round, shared[id(value)])
                self._send(place.task, part)


def send_failure(resolution: Resolution, error: OpError, send: Send) -> None:
    """Tell the other members of an exchange that one has failed."""
    name, own = resolution.exchange, resolution.rank
    for rank, place in enumerate(resolution.places):
        if rank != own:
            send(place.task, Part(name, place.incarnation, rank, own, 0, None, error))


def _senders(params: CollectiveParams, resolution: Resolution) -> frozenset[int]:
    """The ranks of those that send to a member in each round."""
    is_broadcast = params.type is CollectiveType.BROADCAST_COLLECTIVE
    places = enumerate(resolution.places)
    return frozenset([rank for rank, place in places if place.is_source or not is_broadcast])
