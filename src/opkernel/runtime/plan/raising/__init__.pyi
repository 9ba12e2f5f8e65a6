from opkernel.runtime.plan.keys import Key as Key
from opkernel.runtime.plan.keys import key_of as key_of
from opkernel.runtime.plan.keys import keys_of_inputs as keys_of_inputs
from opkernel.runtime.plan.raising.arrange import arrange as arrange
from opkernel.runtime.plan.raising.contexts import ALWAYS as ALWAYS
from opkernel.runtime.plan.raising.contexts import Context as Context
from opkernel.runtime.plan.raising.contexts import Predicate as Predicate
from opkernel.runtime.plan.raising.items import Arrangement as Arrangement
from opkernel.runtime.plan.raising.items import Choose as Choose
from opkernel.runtime.plan.raising.items import Conditional as Conditional
from opkernel.runtime.plan.raising.items import FirstAlive as FirstAlive
from opkernel.runtime.plan.raising.items import Item as Item
from opkernel.runtime.plan.raising.items import Loop as Loop
from opkernel.runtime.plan.raising.items import NotRaisedError as NotRaisedError

__all__: list[str]
