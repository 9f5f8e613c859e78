"""What unreadable metadata raises: one type per cause, so that counters and messages can tell them apart.

OffsetMetadataError
├── EnvelopeError     not Base64, or an unknown first byte
├── CompressionError  not a zstd frame, or too large when unpacked
└── BodyError         too short, a negative number, or a range outside the log
"""


class OffsetMetadataError(ValueError):
    """The metadata cannot be believed; the records that it speaks of must be handled again."""


class EnvelopeError(OffsetMetadataError):
    """Not Base64, or an unknown first byte."""


class CompressionError(OffsetMetadataError):
    """Not a zstd frame, or too large when unpacked."""


class BodyError(OffsetMetadataError):
    """Too short, a negative number, or a range outside the log."""
