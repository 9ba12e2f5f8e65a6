import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.rules import shape_rule


@pytest.mark.parametrize(
    ("rule", "inputs", "outputs"),
    [
        ("[n, k], [n] -> [n], [k]", ["[2,3]", "[?]"], ["[d0_0]", "[d0_1]"]),
        ("[n, k], [n] -> [n, k]", ["?", "[5]"], ["[d1_0,?]"]),
        ("[?], [] -> [2], [?]", ["[7]", "[]"], ["[2]", "[?]"]),
        ("_, [n] -> [n], in0", ["?", "[4]"], ["[d1_0]", "in0"]),
        ("[?, ?] -> in0", ["[2,3]"], ["in0"]),
        ("[?, ?] -> in0", ["?"], ["[?,?]"]),
        ("[..., n] -> [..., n, n]", ["[2,3]"], ["[d0_0,d0_1,d0_1]"]),
        ("[..., n] -> [..., n, n]", ["?"], ["?"]),
        ("[n, ...], [?] -> [?, ...]", ["[2,3,4]", "[2]"], ["[?,d0_1,d0_2]"]),
        ("[..., 3] -> [...]", ["[2,?]"], ["[d0_0]"]),
        ("[..., n], [..., n] -> [n]", ["[2,3]", "[?,?]"], ["[d0_1]"]),
        ("-> [{size}]", [], ["[6]"]),
        ("-> [n], [n, 2]", [], ["[?]", "[?,2]"]),
    ],
)
def test_outputs_have_the_dimensions_that_are_written(infer, rule, inputs, outputs):
    found = infer(shape_rule(rule), *inputs, outputs=len(outputs), attrs={"size": 6})
    assert found == ";".join(outputs)


def test_unknown_dimensions_of_one_name_are_one(context):
    c = context(outputs=2)
    shape_rule("-> [n], [n]")(c)
    first, second = c.outputs()
    assert first.dims == second.dims


@pytest.mark.parametrize(
    ("rule", "inputs", "message"),
    [
        ("[n, k] -> [n]", ["[2]"], "Shape must be rank 2 but is rank 1"),
        ("[..., n] -> [n]", ["[]"], "Shape must be at least rank 1 but is rank 0"),
        ("[n], [n] -> [n]", ["[2]", "[3]"], "Dimensions must be equal, but are 2 and 3"),
        ("[n, 4], [n] -> [n]", ["[2,5]", "[3]"], "Dimensions must be equal, but are 2 and 3"),
        ("[n, 4], [n] -> [n]", ["[2,5]", "[2]"], "Dimension must be 4 but is 5"),
        ("[n, 4], [] -> [n]", ["[2,5]", "[2]"], "Shape must be rank 0 but is rank 1"),
        ("[..., 3] -> [...]", ["[3,2]"], "Dimension must be 3 but is 2"),
        ("[..., n], [..., n] -> [n]", ["[2,3]", "[4,3]"], "must be equal, but are 2 and 4"),
    ],
)
def test_ranks_are_checked_first_then_names_then_sizes(infer, rule, inputs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        infer(shape_rule(rule), *inputs)
