"""The types under the names that TensorFlow's Python API gives them: `float32`, `string`.

`bool` is exported as `opkernel.bool`; `bool_` leaves the builtin its name where all are imported.
"""

from opkernel.types.dtype import DataType

float32 = DataType.DT_FLOAT
float64 = DataType.DT_DOUBLE
double = float64
int32 = DataType.DT_INT32
uint8 = DataType.DT_UINT8
int16 = DataType.DT_INT16
int8 = DataType.DT_INT8
string = DataType.DT_STRING
complex64 = DataType.DT_COMPLEX64
int64 = DataType.DT_INT64
bool = bool_ = DataType.DT_BOOL
qint8 = DataType.DT_QINT8
quint8 = DataType.DT_QUINT8
qint32 = DataType.DT_QINT32
bfloat16 = DataType.DT_BFLOAT16
qint16 = DataType.DT_QINT16
quint16 = DataType.DT_QUINT16
uint16 = DataType.DT_UINT16
complex128 = DataType.DT_COMPLEX128
float16 = DataType.DT_HALF
half = float16
resource = DataType.DT_RESOURCE
variant = DataType.DT_VARIANT
uint32 = DataType.DT_UINT32
uint64 = DataType.DT_UINT64
float8_e5m2 = DataType.DT_FLOAT8_E5M2
float8_e4m3fn = DataType.DT_FLOAT8_E4M3FN
float8_e4m3fnuz = DataType.DT_FLOAT8_E4M3FNUZ
float8_e4m3b11fnuz = DataType.DT_FLOAT8_E4M3B11FNUZ
float8_e5m2fnuz = DataType.DT_FLOAT8_E5M2FNUZ
int4 = DataType.DT_INT4
uint4 = DataType.DT_UINT4
int2 = DataType.DT_INT2
uint2 = DataType.DT_UINT2
float4_e2m1fn = DataType.DT_FLOAT4_E2M1FN
