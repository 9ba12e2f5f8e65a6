from opkernel.runtime.calls.function_options import call_async as call_async
from opkernel.runtime.calls.function_options import check_multi_device as check_multi_device
from opkernel.runtime.calls.function_options import options_of_call as options_of_call
from opkernel.runtime.calls.function_options import run_in_step as run_in_step
from opkernel.runtime.calls.instantiated_function import create_call_op as create_call_op
from opkernel.runtime.calls.instantiated_function import handle_of as handle_of

__all__: list[str]
