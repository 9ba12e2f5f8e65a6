from opkernel.opdef.text.debug_string import short_debug_string as short_debug_string
from opkernel.opdef.text.summary import format_node_def_for_error as format_node_def_for_error
from opkernel.opdef.text.summary import summarize_attr_value as summarize_attr_value
from opkernel.opdef.text.summary import summarize_attrs as summarize_attrs
from opkernel.opdef.text.summary import summarize_node_def as summarize_node_def
from opkernel.opdef.text.summary import summarize_op_def as summarize_op_def
from opkernel.opdef.text.summary import summarize_values as summarize_values

__all__: list[str]
