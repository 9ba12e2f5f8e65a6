from opkernel.io.examples import FeatureValue as FeatureValue
from opkernel.io.examples import example_from_values as example_from_values
from opkernel.io.examples import sequence_example_from_values as sequence_example_from_values
from opkernel.io.examples import values_of_example as values_of_example
from opkernel.io.examples import values_of_sequence_example as values_of_sequence_example
from opkernel.io.record_format import TFRecordOptions as TFRecordOptions
from opkernel.io.tf_record import TFRecordWriter as TFRecordWriter
from opkernel.io.tf_record import tf_record_iterator as tf_record_iterator
from opkernel.proto import BytesList as BytesList
from opkernel.proto import Example as Example
from opkernel.proto import Feature as Feature
from opkernel.proto import FeatureList as FeatureList
from opkernel.proto import FeatureLists as FeatureLists
from opkernel.proto import Features as Features
from opkernel.proto import FloatList as FloatList
from opkernel.proto import Int64List as Int64List
from opkernel.proto import SequenceExample as SequenceExample

__all__: list[str]
