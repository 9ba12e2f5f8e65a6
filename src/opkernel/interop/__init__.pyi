from opkernel.interop.loaded_model import LoadedModel as LoadedModel
from opkernel.interop.loading import load as load
from opkernel.interop.loading import load_as_session as load_as_session
from opkernel.interop.saving import save as save
from opkernel.interop.session_model import SessionModel as SessionModel
from opkernel.interop.session_variable import SessionVariable as SessionVariable
from opkernel.interop.signature import Signature as Signature

__all__: list[str]
