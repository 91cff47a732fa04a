"""The condition for wanted rows as text of SQL, by which deltalake's DataFusion reads them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windows_pipeline.query.tables.keys import KeyRange
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.text.instants import EPOCH_DAY

DAY = "arrival_unit"


def condition(wanted: Wanted) -> str:
    """The condition that is true of the wanted rows, and of no others.

    Values come from users: as a literal, no text leaves its quotes.
    """
    found = _of_keys(wanted.keys)
    for name, span in wanted.times.items():
        for sign, bound_us in ((">=", span.first_us), ("<=", span.last_us)):
            if bound_us is not None:
                found.append(f"{column(name)} {sign} {_instant(bound_us)}")
    if wanted.days is not None:
        days = ", ".join(_date((day - EPOCH_DAY).days) for day in sorted(wanted.days))
        found.append(f"{column(DAY)} IN ({days})" if days else "false")
    return " AND ".join(found) or "true"


def column(name: str) -> str:
    """A column by its name; a part of a struct's column by both names with a point between."""
    outer, _, part = name.partition(".")
    return f"\"{outer}\"['{part}']" if part else f'"{outer}"'


def _of_keys(keys: KeyRange) -> list[str]:
    if keys.first is not None and keys.is_one_key:
        return [_same(name, value) for name, value in zip(keys.columns, keys.first, strict=True)]
    found = []
    if keys.first is not None:
        found.append(_beyond(keys.columns, keys.first, is_after=True))
    if keys.last is not None:
        found.append(_beyond(keys.columns, keys.last, is_after=False))
    return found


def _beyond(names: Sequence[str], bound: Sequence[pa.Scalar], *, is_after: bool) -> str:
    """The condition for keys at a bound or beyond; parts decide in order, null is the smallest."""
    part, value = _part(names[0], bound[0]), bound[0]
    if value.is_valid:
        strictly = f"{part} {'>' if is_after else '<'} {_literal(value)}"
        strictly += "" if is_after else f" OR {part} IS NULL"
    else:
        strictly = f"{part} IS NOT NULL" if is_after else "false"
    at_bound = _same(names[0], value)
    if len(names) > 1:
        at_bound = f"{at_bound} AND {_beyond(names[1:], bound[1:], is_after=is_after)}"
    return f"({strictly} OR {at_bound})"


def _same(name: str, value: pa.Scalar) -> str:
    part = _part(name, value)
    return f"{part} = {_literal(value)}" if value.is_valid else f"{part} IS NULL"


def _part(name: str, value: pa.Scalar) -> str:
    """A part of a key, to be compared with a value.

    Statistics of files leave NaN out, and DataFusion skips files by them unless it has to compute
    what it compares.
    """
    part = column(name)
    return f"nanvl({part}, {part})" if pa.types.is_floating(value.type) else part


def _literal(value: pa.Scalar) -> str:
    kind = value.type
    if pa.types.is_date32(kind):
        return _date(value.cast(pa.int32()).as_py())
    if pa.types.is_timestamp(kind):
        return _instant(value.cast(pa.int64()).as_py())
    text = str(value.as_py()).replace("'", "''")
    if pa.types.is_decimal(kind):
        return f"arrow_cast('{text}', 'Decimal128({kind.precision}, {kind.scale})')"
    if pa.types.is_floating(kind):
        return f"arrow_cast('{text}', 'Float64')"
    return f"'{text}'" if pa.types.is_string(kind) else text


def _date(days: int) -> str:
    return f"arrow_cast({days}, 'Date32')"


def _instant(us: int) -> str:
    return f"arrow_cast({us}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
