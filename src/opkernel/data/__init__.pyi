from opkernel.data.dataset import Dataset as Dataset
from opkernel.data.graph_iterators import make_initializable_iterator as make_initializable_iterator
from opkernel.data.iteration import DatasetIterator as DatasetIterator
from opkernel.data.iteration import Iterator as Iterator
from opkernel.data.iteration import Optional as Optional
from opkernel.data.record_files import FixedLengthRecordDataset as FixedLengthRecordDataset
from opkernel.data.record_files import TextLineDataset as TextLineDataset
from opkernel.data.record_files import TFRecordDataset as TFRecordDataset
from opkernel.data.structure import DatasetSpec as DatasetSpec
from opkernel.data.tables import CsvDataset as CsvDataset
from opkernel.data.tables import SqlDataset as SqlDataset
from opkernel.data.transformations import AUTOTUNE as AUTOTUNE
from opkernel.ops.data.dataset import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from opkernel.ops.data.dataset import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY

__all__: list[str]
