"""Written by tools/generate_stubs.py from table.txt and the files beside this one; do not edit."""

import collections.abc
import typing

import numpy.typing as npt

import opkernel.graph
import opkernel.proto
import opkernel.types

_Tensor: typing.TypeAlias = typing.Any  # an array; in a graph, an opkernel.Tensor
_Input: typing.TypeAlias = (
    npt.ArrayLike
    | opkernel.graph.Tensor
    | opkernel.types.ResourceHandle
    | opkernel.types.Variant
)
_Type: typing.TypeAlias = opkernel.types.DataType | npt.DTypeLike
_Shape: typing.TypeAlias = (
    opkernel.types.TensorShape
    | opkernel.types.PartialTensorShape
    | collections.abc.Sequence[int | None]
    | None
)
_Func: typing.TypeAlias = str | opkernel.proto.NameAttrList

from opkernel.endpoints.strings.text import bytes_split as bytes_split
from opkernel.endpoints.strings.text import format as format
from opkernel.endpoints.strings.text import ngrams as ngrams
from opkernel.endpoints.strings.text import reduce_join as reduce_join
from opkernel.endpoints.strings.text import split as split
from opkernel.endpoints.strings.text import unicode_decode as unicode_decode
from opkernel.endpoints.strings.text import (
    unicode_decode_with_offsets as unicode_decode_with_offsets,
)
from opkernel.endpoints.strings.text import unicode_encode as unicode_encode
from opkernel.endpoints.strings.text import unicode_split as unicode_split
from opkernel.endpoints.strings.text import unicode_split_with_offsets as unicode_split_with_offsets

def as_string(
    input: _Input,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each element as text, with `precision` digits, filled up to `width` characters."""

def join(
    inputs: collections.abc.Sequence[_Input],
    separator: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The strings of all inputs at each place, one after the other, `separator` between them."""

def length(
    input: _Input,
    unit: typing.Literal['BYTE', 'UTF8_CHAR'] = 'BYTE',
    name: str | None = None,
) -> _Tensor:
    """The length of each string, in bytes or characters."""

def lower(
    input: _Input,
    encoding: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each string with its letters in lower case: those of ASCII, or all where `encoding` is utf-8."""

def regex_full_match(
    input: _Input,
    pattern: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether all of each string matches a regular expression of RE2."""

def regex_replace(
    input: _Input,
    pattern: _Input,
    rewrite: _Input,
    replace_global: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Each string with its matches of `pattern` replaced: all, or the first. `\\\\1` is the text of group 1."""

def strip(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """Each string without the blanks at its ends."""

def substr(
    input: _Input,
    pos: _Input,
    len: _Input,
    unit: typing.Literal['BYTE', 'UTF8_CHAR'] = 'BYTE',
    name: str | None = None,
) -> _Tensor:
    """`len` bytes or characters of each string, from `pos` on; a negative `pos` counts from the end."""

def to_hash_bucket(
    input: _Input,
    num_buckets: int,
    name: str | None = None,
) -> _Tensor:
    """The number of the bucket of each string: its MurmurHash modulo `num_buckets`."""

def to_hash_bucket_fast(
    input: _Input,
    num_buckets: int,
    name: str | None = None,
) -> _Tensor:
    """The number of the bucket of each string: its FarmHash fingerprint modulo `num_buckets`."""

def to_hash_bucket_strong(
    input: _Input,
    num_buckets: int,
    key: collections.abc.Sequence[int],
    name: str | None = None,
) -> _Tensor:
    """The number of the bucket of each string: its SipHash under `key` modulo `num_buckets`."""

def to_number(
    input: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The number that each string says, with blanks around."""

def unicode_script(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """ICU's number of the script of each code point; -1 for what is none."""

def unicode_transcode(
    input: _Input,
    input_encoding: str | bytes,
    output_encoding: typing.Literal['UTF-8', 'UTF-16-BE', 'UTF-32-BE'],
    errors: typing.Literal['strict', 'replace', 'ignore'] = 'replace',
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Each string in another encoding."""

def unsorted_segment_join(
    inputs: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    separator: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The strings of each segment joined, in their order."""

def upper(
    input: _Input,
    encoding: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each string with its letters in upper case: those of ASCII, or all where `encoding` is utf-8."""
