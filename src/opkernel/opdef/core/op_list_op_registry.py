"""`OpListOpRegistry`: the ops that a graph brings along.

Source: TensorFlow core/framework/op.cc.
"""

from opkernel.opdef.core.op_def_builder import OpRegistrationData
from opkernel.opdef.core.op_lookup import not_registered
from opkernel.proto import OpDef, OpList


class OpListOpRegistry:
    """The ops of an OpList, read-only: for graphs that bring their ops along."""

    def __init__(self, op_list: OpList) -> None:
        self._ops = {op.name: OpRegistrationData(op) for op in op_list.op}

    def look_up(self, name: str) -> OpRegistrationData:
        """The op of that name; the first of several.

        Raises:
            NotFoundError: the list has no such op.
        """
        found = self._ops.get(name)
        if found is None:
            raise not_registered(name)
        return found

    def look_up_op_def(self, name: str) -> OpDef:
        """The declaration of the op of that name; raises as `look_up` does."""
        return self.look_up(name).op_def
