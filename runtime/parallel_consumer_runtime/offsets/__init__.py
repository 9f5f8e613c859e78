"""The commit's metadata: which offsets above the committed one are complete. Pure, and byte-compatible with Java's."""

from parallel_consumer_runtime.offsets.codec import Encoding, EncodingError, decode, encode, encode_as, encode_within
from parallel_consumer_runtime.offsets.errors import BodyError, CompressionError, EnvelopeError, OffsetMetadataError
from parallel_consumer_runtime.offsets.lines import Line, decode_lines, encode_lines
from parallel_consumer_runtime.offsets.maps import OffsetMap, OffsetRange

__all__ = [
    "BodyError",
    "CompressionError",
    "Encoding",
    "EncodingError",
    "EnvelopeError",
    "Line",
    "OffsetMap",
    "OffsetMetadataError",
    "OffsetRange",
    "decode",
    "decode_lines",
    "encode",
    "encode_as",
    "encode_lines",
    "encode_within",
]
