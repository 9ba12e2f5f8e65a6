"""Write `opkernel/ops/declared/tensorflow_ops.pb.gz` from an OpList in text format.

Run for a new release of TensorFlow: `python tools/generate_op_table.py tf_ops.pbtxt`.
"""

import argparse
import gzip
from pathlib import Path

from google.protobuf import text_format

from opkernel.proto import OpList

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "opkernel" / "ops" / "declared" / "tensorflow_ops.pb.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("op_list", type=Path, help="an OpList in text format, without descriptions")
    ops = text_format.Parse(parser.parse_args().op_list.read_text(), OpList())
    ops.op.sort(key=lambda op: op.name)
    TABLE.write_bytes(gzip.compress(ops.SerializeToString(deterministic=True), mtime=0))


if __name__ == "__main__":
    main()
