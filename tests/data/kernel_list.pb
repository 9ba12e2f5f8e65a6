
H
ShapeXLA_CPU
out_type
2	
T
2	
"output
H
ShapeXLA_CPU
out_type
2
T
2	
"output
 
VarHandleOpXLA_CPU"resource
0
VarHandleOpDEFAULT
dtype
2 "resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2	"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2
"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource
0
VarHandleOpDEFAULT
dtype
2"resource

VarHandleOpCPU
>
ShapeDEFAULT

T
2
out_type
2	"input"output
>
ShapeDEFAULT

T
2
out_type
2"input"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2
"output
7
ShapeDEFAULT
out_type
2

T
2
"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2	"output
7
ShapeDEFAULT
out_type
2

T
2	"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
7
ShapeDEFAULT
out_type
2	

T
2"output
7
ShapeDEFAULT
out_type
2

T
2"output
'
ShapeCPU
out_type
2	"output
'
ShapeCPU
out_type
2"output

MatMulCPU

T
2	

MatMulCPU

T
2

MatMulCPU

T
2

MatMulCPU

T
2

MatMulCPU

T
2

MatMulCPU

T
2

MatMulCPU

T
2

MatMulCPU

T
2

MatMulCPU

T
2