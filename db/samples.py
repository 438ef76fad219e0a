"""Raw samples as one compressed value per measurement, exact to the last bit; kept for ever.

Format 1: a byte 1, then zlib of little-endian data: the count of rounds (uint32), their numbers (int32 each), their
lengths (uint32 each), then all values in turn order (float64 each).
"""

from __future__ import annotations

import struct
import zlib

from core.model import Sample

_FORMAT = b"\x01"


def pack(sample: Sample) -> bytes:
    """The blob of a sample. Raises ValueError when numbers and rounds differ in count."""
    if len(sample.numbers) != len(sample.rounds):
        raise ValueError(f"{len(sample.numbers)} round numbers for {len(sample.rounds)} rounds")
    count = len(sample.rounds)
    values = [value for turns in sample.rounds for value in turns]
    lengths = [len(turns) for turns in sample.rounds]
    raw = struct.pack(f"<I{count}i{count}I{len(values)}d", count, *sample.numbers, *lengths, *values)
    return _FORMAT + zlib.compress(raw, 6)


def unpack(data: bytes) -> Sample:
    """The sample of a blob. Raises ValueError for another format, zlib.error or struct.error for a damaged one."""
    if data[:1] != _FORMAT:
        raise ValueError(f"samples of format {data[:1]!r} need a newer Flashpoint")
    raw = zlib.decompress(data[1:])
    (count,) = struct.unpack_from("<I", raw)
    numbers = struct.unpack_from(f"<{count}i", raw, 4)
    lengths = struct.unpack_from(f"<{count}I", raw, 4 + 4 * count)
    values = struct.unpack_from(f"<{sum(lengths)}d", raw, 4 + 8 * count)
    rounds, at = [], 0
    for length in lengths:
        rounds.append(values[at : at + length])
        at += length
    return Sample(numbers, tuple(rounds))
