"""What is known of ops (`OpTraits`) agrees with their declarations, with TensorFlow, and with what reads it."""

import re
import tomllib
from pathlib import Path

from opkernel.graph.inference.partial_values import RULES as VALUE_RULES
from opkernel.opdef import OpTraits, global_op_registry
from opkernel.opdef.core.op_traits import WHY_NO_KERNEL
from opkernel.ops.catalogue import TRAITS_OF_OP
from opkernel.proto import OpDef
from opkernel.runtime.engines.batches import ROW_RULES
from opkernel.xla.compilability import FILTER_OF

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
RECORDS = {op: OpTraits.from_words(words) for op, words in TRAITS_OF_OP.items()}
OP_DEFS: dict[str, OpDef] = {op.name: op for op in global_op_registry().get_registered_ops()}

NAMES_FILES = re.compile(
    r"file(s|name|names|path|_path|_pattern|_prefix)?$|^path$|prefix(es)?$|urls?$|logdir$"
)
"""The names that TensorFlow gives to arguments and attrs with the names of files and places."""
NAMES_NO_FILES = {
    "ExperimentalSetStatsAggregatorDataset",
    "SetStatsAggregatorDataset",  # a prefix of counters
    "TensorSliceDataset",  # whether its strings are names of files, for tf.data's sharding
}


def test_rules_and_reasons_that_records_name_exist() -> None:
    def named(field: str) -> set[str]:
        return {getattr(one, field) for one in RECORDS.values()} - {""}

    assert named("value_rule") == VALUE_RULES.keys()

    assert named("row_rule") == ROW_RULES.keys()
    assert named("clustering") == FILTER_OF.keys()
    assert named("no_kernel") == WHY_NO_KERNEL.keys()
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert named("extra") <= extras.keys()


def test_ops_whose_arguments_name_files_open_files() -> None:
    opening = {
        op for op, one in RECORDS.items() if one.reads_files or one.writes_files or one.uses_network
    }
    names = {
        op: [*(arg.name for arg in op_def.input_arg), *(attr.name for attr in op_def.attr)]
        for op, op_def in OP_DEFS.items()
    }
    naming = {op for op, found in names.items() if any(map(NAMES_FILES.search, found))}
    assert naming - opening == NAMES_NO_FILES


def test_attrs_that_name_files_are_attrs() -> None:
    for name, record in RECORDS.items():
        if record.file_attr:
            assert record.file_attr in {attr.name for attr in OP_DEFS[name].attr}
            assert record.reads_files or record.writes_files
