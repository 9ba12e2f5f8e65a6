"""RandomGraph: graphs that hold what passes look for, drawn by hypothesis."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

from opkernel.graph import Operation, Tensor
from opkernel.types import DataType, PartialTensorShape

__all__ = ["RandomGraph"]


class RandomGraph:
    """Grows a graph of `[2, 3, 3]` floats that holds what passes look for.

    State: a variable that is counted up, and all that was made so far.
    """

    def __init__(self, data: st.DataObject) -> None:
        self.b = Builder()
        self.draw = data.draw
        shape = PartialTensorShape(self.pick([[2, 3, 3], [None, 3, 3], [None, None, None]]))
        self.x = self.b.op("Placeholder", name="x", dtype=FLOAT, shape=shape)
        self.p = self.b.placeholder("p", BOOL)
        self.made = [self.x]
        self.last_effect: Operation | None = None
        self.twice = define(self.b, "twice", [FLOAT], lambda g, x: [g.op("AddV2", x, x)])
        self.scaled = define(
            self.b, "scaled", [FLOAT], lambda g, x: [g.op("Mul", g.op("Neg", x), g.constant(0.5))]
        )

    def pick(self, choices):
        return self.draw(st.sampled_from(choices))

    def value(self) -> Tensor:
        return self.pick(self.made[-4:])

    def constant(self) -> Tensor:
        number = self.pick([0.0, -0.0, 1.0, 2.0, 0.5, -1.0])
        shape = self.pick([[], [3], [1, 1, 1], [2, 3, 3], [3, 1]])
        return self.b.constant(np.full(shape, number), "f4")

    def grow(self) -> None:
        kinds = "unary binary constant transpose reshape pack matmul shape waits counts cond loop"
        kinds += " unary constant call if while chain chain moved image dead checked sized sized"
        kind = self.pick(kinds.split())
        self.made.append(getattr(self, f"_{kind}")())

    def _unary(self):
        return self.b.op(
            self.pick(["Neg", "Abs", "Relu", "Identity", "Tanh", "StopGradient", "Sign", "Floor"]),
            self.value(),
        )

    def _binary(self):
        op = self.pick(["AddV2", "Sub", "Mul", "Maximum", "SquaredDifference"])
        return self.b.op("Tanh", self.b.op(op, self.value(), self.value()))

    def _constant(self):
        operands = [self.value(), self.constant()]
        if self.draw(st.booleans()):
            operands.reverse()
        return self.b.op(self.pick(["AddV2", "Sub", "Mul", "Maximum"]), *operands)

    def _transpose(self):
        swapped = self.b.constant([0, 2, 1], "i4")
        y = self.b.op("Transpose", self.value(), swapped)
        y = self.b.op(self.pick(["Relu", "Neg", "Tanh"]), y)
        y = self.b.op("AddV2", y, self.b.constant(np.arange(3), "f4"))
        return self.b.op("Transpose", y, swapped) if self.draw(st.booleans()) else y

    def _reshape(self):
        y = self.b.op("Reshape", self.value(), self.b.constant([-1, 9], "i4"))
        y = self.b.op("Reshape", y, self.b.constant([2, 3, 3], "i4"))
        return self.b.op("Pad", y, self.b.constant(np.zeros((3, 2), "i4")))

    def _pack(self):
        packed = self.b.op("Pack", [self.value(), self.value()], axis=1)
        return self.b.operation("Unpack", packed, num=2, axis=1).outputs[self.pick([0, 1])]

    def _matmul(self):
        flat = self.b.op("Reshape", self.value(), self.b.constant([6, 3], "i4"))
        weights = self.b.constant(np.arange(9).reshape(3, 3) / 9, "f4")
        y = self.b.op("MatMul", flat, weights, transpose_b=self.draw(st.booleans()))
        y = self.b.op(self.pick(["BiasAdd", "Mul", "Sub"]), y, self.b.constant([1, 2, 0.5], "f4"))
        y = self.b.op("BiasAdd", y, self.b.constant([-1, 1, 0.25], "f4"))
        y = self.b.op(self.pick(["Relu", "Tanh"]), y)
        return self.b.op("Reshape", y, self.b.op("Shape", self.value()))

    def _shape(self):
        total = self.b.op("Prod", self.b.op("Shape", self.value()), self.b.constant(0))
        return self.b.op("Mul", self.value(), self.b.op("Cast", total, SrcT=INT32, DstT=FLOAT))

    def _waits(self):
        group = self.b.operation("NoOp", after=[self.value().op])
        return self.b.operation("Neg", self.value(), after=[group]).outputs[0]

    def _counts(self):
        b = self.b
        handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="v")
        if self.last_effect is None:
            zero = b.constant(0.0)
            self.last_effect = b.operation("AssignVariableOp", handle, zero, dtype=FLOAT)
        one = b.constant(1.0)
        add = b.operation("AssignAddVariableOp", handle, one, dtype=FLOAT, after=[self.last_effect])
        read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[add])
        self.last_effect = read
        return b.op("AddV2", self.value(), read.outputs[0])

    def _cond(self):
        b, number = self.b, self.pick([0.0, 1.0, -1.0])
        return b.cond(
            self.p,
            lambda x: [b.op("Mul", b.op("Neg", x), b.constant(number))],
            lambda x: [b.op("AddV2", b.op("AddV2", b.constant(number), b.constant(1.0)), x)],
            [self.value()],
        )[0]

    def _loop(self):
        b = self.b

        def body(i, x, w):
            same = b.op("Tanh", b.op("AddV2", w, w))
            return [b.op("AddV2", i, b.constant(1)), b.op("Tanh", b.op("Sub", x, same))]

        turns = self.pick([0, 1, 3])
        return b.while_loop(
            lambda i, x, w: b.op("Less", i, b.constant(turns)),
            body,
            [b.constant(0), self.value()],
            [self.value()],
        )[1]

    def _sized(self):
        """A loop that carries a size, and computes with sizes; another loop or a conditional may be in it."""
        dim = self.pick([0, 1, 2])
        size = self.size_of(self.value(), dim)
        return self.sized_loop(self.value(), size, self.value(), self.pick([0, 1, 1]))

    def size_of(self, x, dim):
        bounds = [self.b.constant([at], "i4") for at in (dim, dim + 1, 1)]
        return self.b.op("StridedSlice", self.b.op("Shape", x), *bounds, shrink_axis_mask=1)

    def waiting(self, x):
        """The same tensor in the same loop and branch, as lowering makes such nodes."""
        assert self.b.pivot is not None
        group = self.b.operation("NoOp", after=[self.b.pivot.op])
        return self.b.operation("Identity", x, after=[group]).outputs[0]

    def sized_loop(self, x, size, invariant, depth):
        b, is_variable, waits = self.b, self.draw(st.booleans()), self.draw(st.booleans())
        start = [b.constant(0), x, *([size] if is_variable else [])]
        rest = [invariant, *([] if is_variable else [size])]

        def parts(args):
            i, x, *others = args
            return i, x, *(others if is_variable else others[::-1])

        def go_on(*args):
            i, _, n, _ = parts(args)
            return b.op("Less", i, self.waiting(n) if waits else n)

        def body(*args):
            i, x, n, w = parts(args)
            x = self.tanh(b.op("AddV2", x, self.cast(self.number(x, n, w), FLOAT)))
            if depth:
                x = self.inside(x, n, w, depth)
            return [b.op("AddV2", i, b.constant(1)), x, *([n] if is_variable else [])]

        return b.while_loop(go_on, body, start, rest)[1]

    def number(self, x, n, w):
        """An integer that follows from sizes, as far as they are known."""
        b = self.b
        numbers = {
            "size": lambda: n,
            "square": lambda: b.op("Mul", n, b.op("Identity", n)),
            "waiting": lambda: b.op("AddV2", self.waiting(n), b.constant(1)),
            "dim": lambda: self.size_of(self.pick([x, w]), self.pick([0, 2])),
            "elements": lambda: b.op("Prod", b.op("Shape", w), b.constant(0)),
            "rank": lambda: b.op("Rank", self.pick([x, w])),
            "parts": lambda: b.op("AddN", [*b.operation("ShapeN", [x, w]).outputs]),
        }
        kind = self.pick(sorted(numbers))
        number = numbers[kind]()
        return b.op("Sum", number, b.constant(0)) if kind == "parts" else number

    def inside(self, x, n, w, depth):
        if self.draw(st.booleans()):
            return self.sized_loop(x, n, w, depth - 1)

        def side(x, n, w):
            return [self.b.op("AddV2", x, self.cast(self.number(x, n, w), FLOAT))]

        greater = self.b.op("Greater", self.number(x, n, w), self.b.constant(self.pick([1, 3, 9])))
        return self.tanh(self.b.cond(greater, side, side, [x, n, w])[0])

    def _call(self):
        function = self.pick([self.twice, self.scaled])
        op = self.pick(["PartitionedCall", "StatefulPartitionedCall"])
        return self.b.op("Tanh", self.b.op(op, [self.value()], f=function, Tout=[FLOAT]))

    def _if(self):
        choice = self.pick([self.p, self.b.constant(True), self.b.constant(False)])
        attrs: dict[str, Any] = {
            "then_branch": self.twice,
            "else_branch": self.scaled,
            "Tout": [FLOAT],
        }
        return self.b.op("Tanh", self.b.op("StatelessIf", choice, [self.value()], **attrs))

    def _while(self):
        number = len(self.made)
        types, turns = [INT32, FLOAT, FLOAT], self.pick([0, 1, 2])
        go_on = define(
            self.b,
            f"go_on_{number}",
            types,
            lambda g, i, x, w: [g.op("Less", i, g.op("Mul", g.constant(turns), g.constant(1)))],
        )
        turn = define(
            self.b,
            f"turn_{number}",
            types,
            lambda g, i, x, w: [
                g.op("AddV2", i, g.op("AddV2", g.constant(0), g.constant(1))),
                g.op("Tanh", g.op("Sub", g.op("Identity", x), g.op("Tanh", g.op("Neg", w)))),
                g.op("Identity", w),
            ],
        )
        inputs = [self.b.constant(0), self.value(), self.value()]
        loop = self.b.operation("StatelessWhile", inputs, cond=go_on, body=turn, T=types)
        return self.pick(loop.outputs[1:])

    def _chain(self):
        """What a shorter chain computes, never of a number that a Floor behind it cuts off."""
        b, x = self.b, self.tanh(self.value())
        one, sure = b.constant(1.0), b.op("Square", x)
        chains = {
            "AddN": lambda: b.op("AddN", [x, x, x]),
            "AddN of AddN": lambda: b.op(
                "AddN", [b.op("AddN", [b.op("AddN", [x, sure]), x]), b.op("AddN", [sure, x]), x]
            ),
            "factor": lambda: b.op("AddV2", b.op("Mul", x, sure), b.op("Mul", self.value(), x)),
            "negated": lambda: b.op(self.pick(["AddV2", "Sub"]), x, b.op("Neg", self.value())),
            "log1p": lambda: b.op("Log", b.op("AddV2", sure, one)),
            "expm1": lambda: b.op("Sub", b.op("Exp", x), one),
            "root": lambda: b.op(
                "Pow", b.op("AddV2", sure, one), b.constant(self.pick([0.5, -0.5]))
            ),
            "Max": lambda: b.op("Max", b.op("Exp", x), b.constant([2], "i4"), keep_dims=True),
            "not": lambda: self.cast(
                b.op("LogicalNot", b.op("Equal", self.value(), self.value())), FLOAT
            ),
        }
        whole = b.op("Mul", self.value(), chains[self.pick(sorted(chains))]())
        return b.op("Mul", self.tanh(whole), b.constant(0.7))

    def tanh(self, x):
        return self.b.op("Tanh", x)

    def cast(self, x, dtype):
        return self.b.op("Cast", x, SrcT=x.dtype, DstT=dtype)

    def _moved(self):
        b, x, last = self.b, self.value(), self.b.constant(-1)
        bounds = [b.constant(np.array(part, "i4")) for part in ([0, 0, 2], [2, 3, 5], [1, 1, 1])]
        moves = {
            "cast": lambda: self.cast(self.cast(x, DataType.DT_DOUBLE), FLOAT),
            "bitcast": lambda: b.op("Bitcast", b.op("Bitcast", x, type=INT32), type=FLOAT),
            "concat": lambda: b.op(
                "StridedSlice",
                b.op("ConcatV2", [b.op("ConcatV2", [x, self.value()], last), x], b.constant(2)),
                *bounds,
            ),
            "matmul": lambda: b.op(
                "BatchMatMulV2", x, b.op("Transpose", x, b.constant([0, 2, 1], "i4"))
            ),
        }
        return self.tanh(moves[self.pick(sorted(moves))]())

    def _image(self):
        """Scaled, padded, convolved with constant filters."""
        b = self.b
        x = b.op("Reshape", self.value(), b.constant([2, 3, 3, 1], "i4"))
        x = b.op(self.pick(["Mul", "RealDiv"]), x, b.constant(self.pick([2.0, 0.3, 1e10])))
        before = self.pick([0, 1])
        around = [before, 1 - before]
        x = b.op("Pad", x, b.constant([[0, 0], around, around, [0, 0]], "i4"))
        filters = b.constant(np.arange(4).reshape(2, 2, 1, 1) / 4, "f4")
        op = self.pick(["Conv2D", "DepthwiseConv2dNative"])
        y = b.op(op, x, filters, strides=[1, 1, 1, 1], padding="VALID")
        return self.tanh(b.op("Reshape", y, b.constant([2, 3, 3], "i4")))

    def _dead(self):
        """A conditional with a predicate that is known, perhaps within another."""
        b, number = self.b, self.pick([1.0, 2.0])
        known = self.pick(
            [lambda: b.constant(True), lambda: b.op("Less", b.constant(1.0), b.constant(number))]
        )

        def inner(x):
            return b.cond(known(), lambda x: [b.op("Neg", x)], lambda x: [b.op("Tanh", x)], [x])

        if self.draw(st.booleans()):
            return b.cond(self.p, inner, lambda x: [x], [self.value()])[0]
        return inner(self.value())[0]

    def _checked(self):
        checked = self.b.op("CheckNumerics", self.tanh(self.value()), message="wrong")
        is_right = self.b.op("LogicalOr", self.p, self.b.constant(True))
        asserted = self.b.operation("Assert", is_right, [checked], T=[FLOAT])
        return self.b.operation("Neg", checked, after=[asserted]).outputs[0]
