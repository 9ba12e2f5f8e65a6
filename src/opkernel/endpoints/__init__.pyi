from opkernel.endpoints import array as array
from opkernel.endpoints import audio as audio
from opkernel.endpoints import bitwise as bitwise
from opkernel.endpoints import image as image
from opkernel.endpoints import linalg as linalg
from opkernel.endpoints import losses as losses
from opkernel.endpoints import math as math
from opkernel.endpoints import nest as nest
from opkernel.endpoints import nn as nn
from opkernel.endpoints import quantization as quantization
from opkernel.endpoints import ragged as ragged
from opkernel.endpoints import random as random
from opkernel.endpoints import sets as sets
from opkernel.endpoints import signal as signal
from opkernel.endpoints import sparse as sparse
from opkernel.endpoints import strings as strings

__all__: list[str]
