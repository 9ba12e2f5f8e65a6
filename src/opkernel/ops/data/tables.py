"""Tables that are filled with the elements of a dataset: InitializeTableFromDataset.

Source: TensorFlow core/kernels/data/experimental/lookup_ops.cc.
"""

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.ops.data.batches import batch_of
from opkernel.ops.data.dataset import Element, dataset_of
from opkernel.ops.data.dataset_op import declare
from opkernel.ops.input_checks import require
from opkernel.ops.lookup.hash_tables import LookupInterface
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import resource_of_handle

declare(
    "InitializeTableFromDataset",
    doc="Fills a table with the elements of a dataset: pairs of a key and a value.",
    traits="initializes_table",
)


@register_kernel("InitializeTableFromDataset")
class InitializeTableFromDataset(OpKernel):
    """Fills a table."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Fill it.

        Raises:
            InvalidArgumentError: the elements are no pairs of the table's types.
        """
        dataset = dataset_of(ctx.input("dataset"))
        with resource_of_handle(ctx, LookupInterface) as table:
            require(table.is_initializable, "The table is not initializable")
            if dataset.dtypes != (table.key_dtype, table.value_dtype):
                raise InvalidArgumentError(
                    f"The elements of {dataset} are no pairs of a key of type "
                    f"{table.key_dtype.string} and a value of type {table.value_dtype.string}"
                )
            pairs: list[Element] = []
            with dataset.iterator() as iterator:
                while (pair := iterator.next(ctx.step)) is not None:
                    pairs.append(pair)
                    check_time("filling a table")
            if pairs:
                table.import_values(*batch_of(pairs, dataset.dtypes))
