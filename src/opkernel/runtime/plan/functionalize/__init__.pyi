from opkernel.runtime.plan.functionalize.arrange import arrange as arrange
from opkernel.runtime.plan.functionalize.contexts import ALWAYS as ALWAYS
from opkernel.runtime.plan.functionalize.contexts import Context as Context
from opkernel.runtime.plan.functionalize.contexts import Predicate as Predicate
from opkernel.runtime.plan.functionalize.items import Arrangement as Arrangement
from opkernel.runtime.plan.functionalize.items import Choose as Choose
from opkernel.runtime.plan.functionalize.items import Conditional as Conditional
from opkernel.runtime.plan.functionalize.items import FirstAlive as FirstAlive
from opkernel.runtime.plan.functionalize.items import Item as Item
from opkernel.runtime.plan.functionalize.items import Loop as Loop
from opkernel.runtime.plan.functionalize.items import NotRaisedError as NotRaisedError
from opkernel.runtime.plan.keys import Key as Key
from opkernel.runtime.plan.keys import key_of as key_of
from opkernel.runtime.plan.keys import keys_of_inputs as keys_of_inputs

__all__: list[str]
