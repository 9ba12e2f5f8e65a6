"""Two kernels of one op; a node chooses by the label in its attr `_kernel`."""

import numpy as np

import opkernel
from opkernel.opdef.common_shapes import scalar_shape

TOTAL = opkernel.register_op(
    "Total", inputs=["x: float"], outputs=["total: float"], shape_fn=scalar_shape
)


@opkernel.register_kernel(opkernel.Name("Total").device("CPU"))
def total(x: np.ndarray) -> np.float32:
    """Sums pairwise, as NumPy does."""
    return np.float32(np.sum(x))


@opkernel.register_kernel(opkernel.Name("Total").device("CPU").label("one_by_one"))
def total_one_by_one(x: np.ndarray) -> np.float32:
    """Sums in order, and loses the small ones beside the large."""
    return np.float32(np.cumsum(x)[-1])


def main() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        attrs = {"dtype": opkernel.float32}
        x = graph.create_op("Placeholder", [], name="x", attrs=attrs).outputs[0]
        graph.create_op("Total", [x], name="default")
        graph.create_op("Total", [x], name="labelled", attrs={"_kernel": "one_by_one"})
    values = np.full(100_000, 0.1, np.float32)
    with opkernel.Session(graph) as session:
        for node in ("default", "labelled"):
            print(f"{node}: {session.run(f'{node}:0', {x: values}):.1f}")


if __name__ == "__main__":
    main()
