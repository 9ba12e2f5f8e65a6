import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import common_shapes


@pytest.mark.parametrize(
    ("a", "b", "transpose_a", "transpose_b", "output"),
    [
        ("?", "?", False, False, "[?,?]"),
        ("[2,3]", "[3,4]", False, False, "[d0_0,d1_1]"),
        ("[3,2]", "[3,4]", True, False, "[d0_1,d1_1]"),
        ("[2,3]", "[4,3]", False, True, "[d0_0,d1_0]"),
        ("[3,2]", "[4,3]", True, True, "[d0_1,d1_0]"),
        ("[2,?]", "[3,4]", False, False, "[d0_0,d1_1]"),
        ("?", "[3,4]", False, False, "[?,d1_1]"),
    ],
)
def test_matmul(infer, a, b, transpose_a, transpose_b, output):
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    assert infer(common_shapes.matmul_shape, a, b, attrs=attrs) == output


@pytest.mark.parametrize(
    ("a", "b", "facts"),
    [
        ("[2]", "[3,4]", "Shape must be rank 2 but is rank 1"),
        ("[2,5]", "[3,4]", "Dimensions must be equal, but are 5 and 3"),
    ],
)
def test_matmul_refuses(infer, a, b, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.matmul_shape, a, b, attrs={"transpose_a": False, "transpose_b": False})


@pytest.mark.parametrize(
    ("a", "b", "adj_x", "adj_y", "same_batch", "broadcast"),
    [
        ("[5,2,3]", "[5,3,4]", False, False, "[d0_0,d0_1,d1_2]", "[d0_0,d0_1,d1_2]"),
        ("[5,3,2]", "[5,4,3]", True, True, "[d0_0,d0_2,d1_1]", "[d0_0,d0_2,d1_1]"),
        ("[2,3]", "[3,4]", False, False, "[d0_0,d1_1]", "[d0_0,d1_1]"),
        ("[1,2,3]", "[5,3,4]", False, False, None, "[d1_0,d0_1,d1_2]"),
        ("[2,3]", "[5,3,4]", False, False, None, "[d1_0,d0_0,d1_2]"),
        ("[?,2,3]", "[5,3,4]", False, False, "[d1_0,d0_1,d1_2]", "[d1_0,d0_1,d1_2]"),
        ("?", "[5,3,4]", False, False, "[d1_0,?,d1_2]", "?"),
    ],
)
def test_batch_matmul(infer, a, b, adj_x, adj_y, same_batch, broadcast):
    attrs = {"adj_x": adj_x, "adj_y": adj_y}
    assert infer(common_shapes.batch_matmul_v2_shape, a, b, attrs=attrs) == broadcast
    if same_batch is None:
        with pytest.raises(InvalidArgumentError):
            infer(common_shapes.batch_matmul_shape, a, b, attrs=attrs)
    else:
        assert infer(common_shapes.batch_matmul_shape, a, b, attrs=attrs) == same_batch


def test_batch_matmul_refuses(infer):
    attrs = {"adj_x": False, "adj_y": False}
    for fn in (common_shapes.batch_matmul_shape, common_shapes.batch_matmul_v2_shape):
        with pytest.raises(InvalidArgumentError, match="at least rank 2 but is rank 1"):
            infer(fn, "[2]", "[3,4]", attrs=attrs)
        with pytest.raises(InvalidArgumentError, match="must be equal, but are 3 and 2"):
            infer(fn, "[2,3]", "[2,4]", attrs=attrs)


@pytest.mark.parametrize(
    ("equation", "inputs", "output"),
    [
        ("ab,bc->ac", ("[2,3]", "[3,4]"), "[d0_0,d1_1]"),
        ("ab->ba", ("[2,3]",), "[d0_1,d0_0]"),
        ("ii->i", ("[?,3]",), "[d0_1]"),
        ("ii->", ("[3,3]",), "[]"),
        (",->", ("[]", "[]"), "[]"),
        ("a->aa", ("[3]",), "[d0_0,d0_0]"),
        ("...ab->b...a", ("[5,6,2,3]",), "[d0_3,d0_0,d0_1,d0_2]"),
        ("a...b->...", ("[2,5,3]",), "[d0_1]"),
        ("...ab,...bc->...ac", ("[7,1,2,3]", "[5,3,4]"), "[d0_0,d1_0,d0_2,d1_2]"),
        ("...ab,...bc->...ac", ("?", "[5,3,4]"), "?"),
        ("ab,bc->ac", ("?", "?"), "[?,?]"),
        ("...a->a", ("[4]",), "[d0_0]"),
    ],
)
def test_einsum(infer, equation, inputs, output):
    assert infer(common_shapes.einsum_shape, *inputs, attrs={"equation": equation}) == output


@pytest.mark.parametrize(
    ("equation", "inputs", "facts"),
    [
        ("ab,bc", ("[2,3]", "[3,4]"), "exactly one '->' in einsum equation: ab,bc"),
        ("a,b,c->abc", ("[1]", "[1]", "[1]"), "1 or 2 input subscripts.*got: 3"),
        ("ab->a", ("[1,2]", "[1]"), "Expected 1 inputs for equation ab->a but got: 2"),
        ("a,b->ab", (), "Expected either 1 or 2 inputs but got: 0"),
        ("ab->a", ("[1]",), "must be rank 2 but is rank 1"),
        ("a...b->a", ("[1]",), "must be at least rank 2 but is rank 1"),
        ("aa->a", ("[1,2]",), "must be equal, but are 1 and 2"),
        ("...a->a", ("[3,4]",), "must be at most rank 0 but is rank 1"),
        ("a->ab", ("[1]",), "equation 'a->ab' has label 'b'"),
        ("a..->a", ("[1]",), "found 2 periods.*a[.][.]"),
        (".a..->a", ("[1]",), "outside of ellipsis in subscript: .a.."),
    ],
)
def test_einsum_refuses(infer, equation, inputs, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.einsum_shape, *inputs, attrs={"equation": equation})


def index(*values):
    return np.int32(values[0]) if len(values) == 1 else np.array(values, np.int32)


@pytest.mark.parametrize(
    ("matrices", "band", "output"),
    [
        ("[5,2,3]", index(0), "[d0_0,2]"),
        ("[5,2,3]", index(2), "[d0_0,1]"),
        ("[5,2,3]", index(-1), "[d0_0,1]"),
        ("[5,2,3]", index(-1, 1), "[d0_0,3,2]"),
        ("[?,?,3]", index(-1, 1), "[d0_0,3,?]"),
        ("?", index(0), "?"),
        ("[5,2,3]", None, "?"),
    ],
)
def test_diagonals_are_taken_from_matrices(infer, matrices, band, output):
    shape = "[2]" if band is not None and band.ndim else "[]"
    found = infer(
        common_shapes.matrix_diag_part_v2_shape, matrices, shape, "[]", constants={1: band}
    )
    assert found == output


@pytest.mark.parametrize(
    ("band", "facts"),
    [
        (index(1, 0), "lower_diag_index is greater than upper_diag_index"),
        (index(-2, 0), "lower_diag_index is out of bound"),
        (index(0, 3), "upper_diag_index is out of bound"),
        (index(0, 1, 2), "It has 3 elements"),
    ],
)
def test_bands_outside_the_matrix_are_refused(infer, band, facts):
    shapes = ["[2,3]", "[2]", "[]"]
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.matrix_diag_part_v2_shape, *shapes, constants={1: band})


@pytest.mark.parametrize(
    ("diagonal", "band", "rows", "columns", "output"),
    [
        ("[5,2]", index(0), -1, -1, "[d0_0,2,2]"),
        ("[5,2]", index(1), -1, -1, "[d0_0,3,3]"),
        ("[5,2]", index(-1), 3, 4, "[d0_0,3,4]"),
        ("[5,3,2]", index(-1, 1), -1, -1, "[d0_0,2,2]"),
        ("[5,3,2]", index(-1, 1), 3, -1, "[d0_0,3,2]"),
        ("[2]", index(0), 2, 7, "[2,7]"),
    ],
)
def test_matrices_are_made_of_diagonals(infer, diagonal, band, rows, columns, output):
    shapes = [diagonal, "[2]" if band.ndim else "[]", "[]", "[]", "[]"]
    constants = {1: band, 2: np.int32(rows), 3: np.int32(columns)}
    assert infer(common_shapes.matrix_diag_v2_shape, *shapes, constants=constants) == output


@pytest.mark.parametrize(
    ("diagonal", "band", "rows", "columns", "facts"),
    [
        ("[5,4,2]", index(-1, 1), -1, -1, "num_diags = 4, d_lower = -1, d_upper = 1"),
        ("[2]", index(0), 1, -1, "num_rows is too small"),
        ("[2]", index(0), -1, 1, "num_cols is too small"),
        ("[2]", index(0), 3, 3, "num_rows = 3 != min_num_rows = 2, num_cols = 3"),
    ],
)
def test_diagonals_that_do_not_fit_are_refused(infer, diagonal, band, rows, columns, facts):
    shapes = [diagonal, "[2]" if band.ndim else "[]", "[]", "[]", "[]"]
    constants = {1: band, 2: np.int32(rows), 3: np.int32(columns)}
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.matrix_diag_v2_shape, *shapes, constants=constants)


@pytest.mark.parametrize(
    ("matrices", "diagonal", "band", "output"),
    [
        ("[5,2,3]", "[5,2]", index(0), "in0"),
        ("[?,2,3]", "[5,2]", index(0), "[d1_0,d0_1,d0_2]"),
        ("[?,2,3]", "[5,3,2]", index(-1, 1), "[d1_0,d0_1,d0_2]"),
        ("?", "[5,2]", index(0), "[d1_0,?,?]"),
        ("?", "?", None, "in0"),
    ],
)
def test_diagonals_are_set_in_matrices(infer, matrices, diagonal, band, output):
    shape = "[2]" if band is not None and band.ndim else "[]"
    constants = {2: band}
    fn = common_shapes.matrix_set_diag_v2_shape
    assert infer(fn, matrices, diagonal, shape, constants=constants) == output


def test_diagonals_of_another_rank_cannot_be_set(infer):
    with pytest.raises(InvalidArgumentError, match="rank 2 but is rank 3"):
        infer(
            common_shapes.matrix_set_diag_v2_shape,
            "[5,2,3]",
            "[5,2,2]",
            "[]",
            constants={2: index(0)},
        )


DIAGONALS = {
    "part": (common_shapes.matrix_diag_part_v2_shape, ["[5,2,3]", "[]", "[]"]),
    "diag": (common_shapes.matrix_diag_v2_shape, ["[5,2]", "[]", "[]", "[]", "[]"]),
    "set": (common_shapes.matrix_set_diag_v2_shape, ["[5,2,3]", "[5,2]", "[]"]),
}


@pytest.mark.parametrize(
    ("name", "place", "shape"),
    [
        ("part", 0, "[2]"), ("part", 1, "[1,1]"), ("part", 2, "[1]"),
        ("diag", 0, "[]"), ("diag", 1, "[1,1]"), ("diag", 2, "[1]"), ("diag", 3, "[1]"),
        ("diag", 4, "[1]"), ("set", 0, "[2]"), ("set", 1, "[]"), ("set", 2, "[1,1]"),
    ],
)  # fmt: skip
def test_ranks_of_diagonals_and_bands(infer, name, place, shape):
    fn, shapes = DIAGONALS[name]
    infer(fn, *shapes)
    with pytest.raises(InvalidArgumentError, match=r"must be (at (least|most) )?rank"):
        infer(fn, *shapes[:place], shape, *shapes[place + 1 :])


@pytest.mark.parametrize(
    ("diagonal", "band", "rows", "columns", "output", "is_doubted"),
    [
        ("[5,2]", index(0), 2, 2, "[d0_0,2,2]", False),
        ("[5,2]", index(0), None, 2, "[d0_0,2,2]", True),
        ("[5,2]", index(0), 2, None, "[d0_0,2,2]", True),
        ("[5,?]", index(0), None, None, "[d0_0,?,?]", True),
        ("?", index(0), 2, 2, "?", False),
        ("[5,2]", None, 2, 2, "?", False),
    ],
)
def test_sizes_of_matrices_that_are_not_known_are_doubted(
    context, diagonal, band, rows, columns, output, is_doubted
):
    constants = {
        1: band,
        2: None if rows is None else np.int32(rows),
        3: None if columns is None else np.int32(columns),
    }
    c = context([diagonal, "[]", "[]", "[]", "[]"], constants=constants)
    common_shapes.matrix_diag_v2_shape(c)
    sizes = output.replace("d0_0", "5")
    assert repr(c.output(0)) == sizes
    assert c.has_doubts is is_doubted


@pytest.mark.parametrize(
    ("matrices", "diagonal", "facts"),
    [
        ("[5,2,3]", "[5]", "at least rank 2 but is rank 1"),
        ("[5,2,3]", "[1,5,2,2]", "at most rank 3 but is rank 4"),
        ("[5,2,3]", "[6,2]", None),
        ("[?,2,3]", "[5,2]", None),
        ("[5,2,3]", "[5,2,2]", None),
    ],
)
def test_diagonals_of_an_unknown_band_may_have_either_rank(infer, matrices, diagonal, facts):
    fn = common_shapes.matrix_set_diag_v2_shape
    if facts is None:
        infer(fn, matrices, diagonal, "[?]")
    else:
        with pytest.raises(InvalidArgumentError, match=facts):
            infer(fn, matrices, diagonal, "[?]")


def test_a_band_to_be_set_lies_inside_the_matrix(infer):
    fn = common_shapes.matrix_set_diag_v2_shape
    for band, diagonal, fact in (
        (index(3), "[5,2]", "lower_diag_index is out of bound: 3"),
        (index(-2), "[5,2]", "lower_diag_index is out of bound: -2"),
        (index(2), "[5,1]", None),
        (index(-1), "[5,1]", None),
    ):
        if fact is None:
            assert infer(fn, "[5,2,3]", diagonal, "[]", constants={2: band}) == "in0"
        else:
            with pytest.raises(InvalidArgumentError, match=fact):
                infer(fn, "[5,2,3]", diagonal, "[]", constants={2: band})
