"""Servable: one version of a model, loaded, with what each of its signatures needs to be served.

Source: TensorFlow Serving servables/tensorflow/saved_model_bundle_factory.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.interop import Signature, load_as_session
from opkernel.messages import did_you_mean
from opkernel.runtime import SessionConfig
from opkernel.serving.batcher import Batcher
from opkernel.serving.serving_options import ServingOptions
from opkernel.serving.warmup import warmup_calls

_DEFAULT = "serving_default"
_CONFIG = SessionConfig(operation_timeout_in_ms=86_400_000)
"""Steps have the time of their requests. Only a session with a limit of its own looks at the clock."""


class Servable:
    """A model that answers.

    Attributes:
        name: The name of the model.
        version: Its version.
        model: The model, as TensorFlow Serving loads it.

    Args:
        path: Its directory.
        observe: Told the rows of each batch that runs.
    """

    def __init__(
        self,
        name: str,
        version: int,
        path: Path,
        options: ServingOptions,
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self.name = name
        self.version = version
        self.model = load_as_session(path, permissions=options.permissions, jit=options.jit)
        self.model.session_options["config"] = _CONFIG
        self._batchers = {
            key: Batcher(signature, options.max_batch, options.batch_timeout_s, observe)
            for key, signature in self.model.signatures.items()
        }
        self._uses = 0
        self._is_retired = False
        self._lock = threading.Lock()
        self._warm_up(path)

    def signature(self, name: str) -> Signature:
        """A signature; that of the name `serving_default` for an empty name.

        Raises:
            InvalidArgumentError: there is none.
        """
        known = self.model.signatures
        if (name or _DEFAULT) not in known:
            raise InvalidArgumentError(
                f'Serving signature name: "{name or _DEFAULT}" not found in signature def; '
                f"the model has {', '.join(known) or 'none'}{did_you_mean(name, known)}"
            )
        return known[name or _DEFAULT]

    def run(self, signature: Signature, inputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs of a signature, perhaps computed together with those of other calls."""
        return self._batchers[signature.name].run(inputs)

    def begin_use(self) -> bool:
        """Keep the model until `end_use`; False where it was retired before."""
        with self._lock:
            if not self._is_retired:
                self._uses += 1
            return not self._is_retired

    def end_use(self) -> None:
        """Let the model go, if it is retired and nobody else uses it."""
        with self._lock:
            self._uses -= 1
            ends = self._is_retired and not self._uses
        if ends:
            self.model.close()

    def retire(self) -> None:
        """Take no further uses; the model is closed when the last one ends."""
        with self._lock:
            ends = not self._is_retired and not self._uses
            self._is_retired = True
        if ends:
            self.model.close()

    def _warm_up(self, path: Path) -> None:
        """Read the values, and run what the model has as its first requests."""
        self.model.session  # noqa: B018  # reads the checkpoint
        for signature_name, inputs in warmup_calls(path):
            self.signature(signature_name)(**inputs)
