"""GrpcServer: models behind gRPC, beside or without REST (extra `opkernel[grpc]`).

It has TensorFlow Serving's PredictionService and ModelService, and gRPC's health checks. What they answer is in
`grpc_services`.

Source: TensorFlow Serving apis/prediction_service.proto, model_service.proto, model_servers/server.cc.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from opkernel.device.budget import current_budget
from opkernel.errors import Code, FailedPreconditionError, OpError
from opkernel.libraries import library
from opkernel.proto import POOL, message_class
from opkernel.serving.bounded_work import bounded
from opkernel.serving.grpc_services import METHODS, Method
from opkernel.serving.model_server import ModelServer

_THREADS = 8
"""Those that compute, besides the requests of a batch, which wait for it."""
_GRACE_S = 5.0

Observe = Callable[[str, str, Code, float], object]


class GrpcServer:
    """Answers at an address until it is stopped.

    Args:
        server: The models; somebody else has them looked after.
        address: Where it listens, such as `127.0.0.1:8500`; with port 0 at any port that is free.

    Attributes:
        port: The port.
        observe: Told the model, the method, the status code and the seconds of each request.

    Raises:
        UnimplementedError: gRPC is not installed.
        FailedPreconditionError: it cannot listen there.
    """

    def __init__(self, server: ModelServer, address: str) -> None:
        self.observe: Observe = lambda model, method, code, seconds: None
        self._grpc: Any = library("grpc", "Serving models by gRPC")
        self._server = server
        self._budget = current_budget()  # of the command
        options = server.options
        threads = ThreadPoolExecutor(_THREADS + options.max_batch, "opkernel-grpc")
        settings = [
            ("grpc.max_receive_message_length", options.max_request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # else two servers would share a port, and its requests
        ]
        self._listening = self._grpc.server(threads, options=settings)
        services: dict[str, dict[str, Any]] = {}
        for name, method in METHODS.items():
            service, _, procedure = name.rpartition("/")
            services.setdefault(service, {})[procedure] = self._handler(method)
        for service, handlers in services.items():
            handler = self._grpc.method_handlers_generic_handler(service, handlers)
            self._listening.add_generic_rpc_handlers((handler,))
        try:
            self.port: int = self._listening.add_insecure_port(address)
        except RuntimeError as error:
            raise FailedPreconditionError(f"Cannot listen at {address}: {error}") from None

    def start(self) -> None:
        """Begin to answer."""
        self._listening.start()

    def stop(self) -> None:
        """Take no more requests; those under way have some seconds to end."""
        self._listening.stop(_GRACE_S).wait()

    def _handler(self, method: Method) -> Any:
        request, response = (
            message_class(POOL.FindMessageTypeByName(name))
            for name in (method.request, method.response)
        )
        return self._grpc.unary_unary_rpc_method_handler(
            lambda message, context: self._answer(method, message, response, context),
            request_deserializer=request.FromString,
            response_serializer=response.SerializeToString,
        )

    def _answer(self, method: Method, request: Any, response: Any, context: Any) -> Any:
        """The answer to a request; the call is aborted with the status code where there is none."""
        start, code, message = time.monotonic(), Code.OK, ""
        seconds = min(context.time_remaining() or float("inf"), self._server.options.timeout_s)
        answer = response()
        try:
            work = method.answer
            bounded(lambda: work(self._server, request, answer), start + seconds, self._budget)
        except OpError as error:
            code, message = error.code, error.message
        known = getattr(getattr(request, "model_spec", None), "name", "")
        name = known if known in self._server.names else ""
        self.observe(name, method.name, code, time.monotonic() - start)
        if code is not Code.OK:
            context.abort(self._status(code), message)
        return answer

    def _status(self, code: Code) -> Any:
        return next(one for one in self._grpc.StatusCode if one.value[0] == code.value)
