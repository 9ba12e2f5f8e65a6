from opkernel.proto import Event as Event
from opkernel.proto import Summary as Summary
from opkernel.proto import SummaryMetadata as SummaryMetadata
from opkernel.summary import experimental as experimental
from opkernel.summary.event_files import FileWriter as FileWriter
from opkernel.summary.event_files import summary_iterator as summary_iterator
from opkernel.summary.media import audio as audio
from opkernel.summary.media import image as image
from opkernel.summary.values import graph as graph
from opkernel.summary.values import histogram as histogram
from opkernel.summary.values import scalar as scalar
from opkernel.summary.values import text as text
from opkernel.summary.values import write as write
from opkernel.summary.writers import SummaryWriter as SummaryWriter
from opkernel.summary.writers import create_file_writer as create_file_writer
from opkernel.summary.writers import flush as flush
from opkernel.summary.writers import record_if as record_if
from opkernel.summary.writers import should_record_summaries as should_record_summaries

__all__: list[str]
