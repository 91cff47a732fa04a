"""Splits CSV text (RFC 4180) into records and fields, as compiled loops over its UTF-8 bytes."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled

SKIPPED, MALFORMED = 1, 2
"""Bits of a record's state: to skip (a blank line, or the header again); malformed (the record
breaks RFC 4180, or has not as many fields as the header)."""
NO_FIELD, PLAIN, QUOTED, DOUBLED, BROKEN = 0, 1, 2, 3, 4
"""Kinds of a field: missing (null), without quotes, in quotes, in quotes with doubled quotes
inside, and malformed: with a quote that is not closed, or closed before the field's end."""
_QUOTE, _LF, _CR = 0x22, 0x0A, 0x0D
_BLANKS = (0x20, 0x09, 0x0B, 0x0C)


@compiled
def _stands_at(data: np.ndarray, position: int, text: np.ndarray) -> bool:
    """Whether the data contain a text, of at least one byte, at a position."""
    if data[position] != text[0] or position + len(text) > len(data):
        return False
    index = 1
    while index < len(text) and data[position + index] == text[index]:
        index += 1
    return index == len(text)


@compiled
def _is_skipped(
    record: np.ndarray,
    header: np.ndarray,
    may_be_blank: bool,  # noqa: FBT001  compiled code takes its arguments by position
) -> bool:
    """Whether a record is a blank line, or the header again."""
    if len(record) == len(header) and len(header) > 0 and _stands_at(record, 0, header):
        return True
    position = 0
    while may_be_blank and position < len(record) and record[position] in _BLANKS:
        position += 1
    return may_be_blank and position == len(record)


@compiled
def _end_of_field(data: np.ndarray, position: int, delimiter: np.ndarray) -> int:
    """The position of the next delimiter or line break, or the end of the data."""
    while (
        position < len(data)
        and data[position] != _LF
        and data[position] != _CR
        and not _stands_at(data, position, delimiter)
    ):
        position += 1
    return position


@compiled
def _closing_quote(data: np.ndarray, position: int) -> tuple[int, int]:
    """The position of the quote that closes a field, and the kind of the field.

    The position is that of the last byte if the quote there may be the first of a doubled quote,
    which only more data can show; it is the length of the data if no quote closes the field.
    """
    kind = QUOTED
    while position < len(data):
        if data[position] != _QUOTE:
            position += 1
        elif position + 1 < len(data) and data[position + 1] == _QUOTE:
            kind = DOUBLED
            position += 2
        else:
            break
    return min(position, len(data)), kind


@compiled
def _after_line_break(data: np.ndarray, position: int) -> int:
    """The end of the line break at a position, which may be the end of the data."""
    if position + 1 < len(data) and data[position] == _CR and data[position + 1] == _LF:
        return position + 2
    return min(position + 1, len(data))


@compiled
def _field(
    data: np.ndarray,
    position: int,
    is_last: bool,  # noqa: FBT001  compiled code takes its arguments by position
    delimiter: np.ndarray,
) -> tuple[int, int, int, int]:
    """Where a field's text begins and ends, where the field ends, and its kind.

    The kind is NO_FIELD if the field opens a quote and only more data can show where that quote
    closes.
    """
    if position == len(data) or data[position] != _QUOTE:
        end = _end_of_field(data, position, delimiter)
        return position, end, end, PLAIN
    end, kind = _closing_quote(data, position + 1)
    if end + 1 >= len(data) and not is_last:
        return position, end, end, NO_FIELD
    after = min(end + 1, len(data))
    field_end = _end_of_field(data, after, delimiter)
    if end == len(data) or field_end > after:
        kind = BROKEN
    return position + 1, end, field_end, kind


@compiled
def _without_fields(kinds: np.ndarray, slots: np.ndarray, record: int, first: int) -> None:
    """Marks a field of a record, and all fields after it, as missing."""
    for field in range(first, len(slots)):
        if slots[field] >= 0:
            kinds[slots[field], record] = NO_FIELD


@compiled
def scan_records(
    data: np.ndarray,
    is_last: bool,  # noqa: FBT001  compiled code takes its arguments by position
    delimiter: np.ndarray,
    header: np.ndarray,
    field_count: int,
    slots: np.ndarray,
    bounds: np.ndarray,
    states: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    kinds: np.ndarray,
) -> tuple[int, int, int]:
    """Finds the complete records at the start of some data, and the fields asked for.

    A quote opens a field only at the field's start. A record ends with LF, CR LF or CR.

    Args:
        data: UTF-8 bytes that begin with a record.
        is_last: Whether the data end with the file, so that the last record is complete.
        delimiter: The bytes of one character.
        header: The bytes of a record to skip; none if empty.
        field_count: How many fields a record must have; 0 for any number.
        slots: For each field of a record the row of `begins`, `ends` and `kinds` to fill; -1 for a
            field to leave out.
        bounds: Filled with a row per record: where it begins, where its text ends, and where the
            next record begins. Its length is the most records to find.
        states: Filled with bits of each record.
        begins: Filled with where each field's text begins, per slot and record; quotes aside.
        ends: Filled with where each field's text ends.
        kinds: Filled with the kind of each field; the fields of a malformed record are missing.

    Returns:
        The number of records found; the bytes that they take; and the position of the quote that
        the incomplete record after them has opened, or -1.
    """
    length = len(data)
    position = 0
    for record in range(len(bounds)):
        start = position
        if start == length:
            return record, start, -1
        field, state = 0, 0
        while True:
            begin, end, field_end, kind = _field(data, position, is_last, delimiter)
            if kind == NO_FIELD:
                return record, start, position
            state = MALFORMED if kind == BROKEN else state
            if field < len(slots) and slots[field] >= 0:
                slot = slots[field]
                begins[slot, record], ends[slot, record] = begin, end
                kinds[slot, record] = kind
            field += 1
            position = field_end
            if position == length or data[position] == _LF or data[position] == _CR:
                break
            position += len(delimiter)
        # CR may be the first byte of a line break of two.
        if not is_last and position + 1 >= length and (position == length or data[position] == _CR):
            return record, start, -1
        _without_fields(kinds, slots, record, field)
        if _is_skipped(data[start:position], header, field == 1 and kind == PLAIN):
            state = SKIPPED
        elif state == MALFORMED or field_count not in (0, field):
            state = MALFORMED
            _without_fields(kinds, slots, record, 0)
        bounds[record, 0], bounds[record, 1] = start, position
        position = _after_line_break(data, position)
        bounds[record, 2] = position
        states[record] = state
    return len(bounds), position, -1


@compiled
def _text_bytes(states: np.ndarray, begins: np.ndarray, ends: np.ndarray, kinds: np.ndarray) -> int:
    total = 0
    for record in range(len(states)):
        if states[record] & SKIPPED == 0 and kinds[record] != NO_FIELD:
            total += ends[record] - begins[record]
    return total


@compiled
def gathered_texts(
    data: np.ndarray,
    states: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    kinds: np.ndarray,
    kept: int,
    keeps_empty: bool,  # noqa: FBT001  compiled code takes its arguments by position
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies one text per kept record into one array, with doubled quotes undone.

    An empty field without quotes is null.

    Args:
        data: The bytes that `scan_records` took.
        states: The records' bits.
        begins: Where each record's text begins.
        ends: Where each record's text ends.
        kinds: The kinds of the texts.
        kept: The number of records that are not skipped.
        keeps_empty: Whether ``""`` is the empty text; if not, it is null.

    Returns:
        Offsets into the bytes (int32, one more than there are records), the bytes, and whether
        each text is not null.
    """
    offsets = np.zeros(kept + 1, np.int32)
    is_valid = np.zeros(kept, np.bool_)
    texts = np.empty(_text_bytes(states, begins, ends, kinds), np.uint8)
    index = 0
    size = 0
    for record in range(len(states)):
        if states[record] & SKIPPED:
            continue
        kind = kinds[record]
        begin, end = begins[record], ends[record]
        if kind in (PLAIN, QUOTED):
            for position in range(begin, end):
                texts[size] = data[position]
                size += 1
            is_valid[index] = end > begin or (keeps_empty and kind == QUOTED)
        elif kind == DOUBLED:
            position = begin
            while position < end:
                texts[size] = data[position]
                size += 1
                position += 2 if data[position] == _QUOTE else 1
            is_valid[index] = True
        index += 1
        offsets[index] = size
    return offsets, texts[:size], is_valid
