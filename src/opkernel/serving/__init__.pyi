from opkernel.serving.client import Client as Client
from opkernel.serving.grpc_server import GrpcServer as GrpcServer
from opkernel.serving.http_server import application as application
from opkernel.serving.http_server import serve as serve
from opkernel.serving.model_server import ModelServer as ModelServer
from opkernel.serving.model_server import VersionStatus as VersionStatus
from opkernel.serving.requests import answer as answer
from opkernel.serving.requests import model_request as model_request
from opkernel.serving.servable import ServingOptions as ServingOptions

__all__: list[str]
