"""Ops that are known by their declaration: TensorFlow's OpDef and a shape function, no kernel yet.

The OpDefs stand in one table (`table.py`). The modules here hold the shape functions of one topic
each, in a dict `SHAPE_FNS` by the name of the op. An op that gets a kernel moves, with its shape
function, to the module of its topic one folder up and is declared there.
"""
