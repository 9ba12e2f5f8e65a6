"""The catalogue of ops: each module holds its ops' declarations, shape functions and CPU kernels.

No module is imported before one of its ops is looked up: `catalogue.txt` says which module an op
is in. An op's OpDef, and the types that its kernels take, are those of TensorFlow 2.21.

Source: TensorFlow core/ops, core/kernels.
"""
