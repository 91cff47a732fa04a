"""The records of a text file, found one sign after the other, and the packers of files."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable

import pyarrow as pa

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
}
"""How a file is compressed, by the end of its name."""
_BLANK = re.compile(rb"[ \t\n\x0b\f\r]*")


def records_of_json(data: bytes) -> list[str]:
    """The lines of a file that are not blank; U+FFFD stands for bytes that are no text."""
    lines = re.split(rb"\r\n|\n|\r", data.removeprefix(b"\xef\xbb\xbf"))
    return [line.decode(errors="replace") for line in lines if not _BLANK.fullmatch(line)]


def records_of_csv(data: bytes) -> list[str]:
    """The records below the header, without blank lines and repeated headers, as text."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    records, current, state = [], b"", "start"
    for sign in (data[at : at + 1] for at in range(len(data))):
        if state != "quoted" and sign in {b"\n", b"\r"}:
            # After CR, LF ends a blank record, which is skipped.
            records.append(current)
            current, state = b"", "start"
            continue
        current += sign
        if sign == b'"':
            state = {"start": "quoted", "quoted": "quote", "quote": "quoted"}.get(state, "plain")
        elif state != "quoted":
            state = "start" if sign == b"," else "plain"
    records.append(current)
    headed = [one for one in records if not _BLANK.fullmatch(one)]
    return [one.decode(errors="replace") for one in headed[1:] if one != headed[0]]
