"""Guesses from a column's name what its values are."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TIME = _words("ts time timestamp datetime date at on when epoch utc clock")
_TIME_ENDINGS = ("time", "date", "stamp", "timestamp", "epoch")
_EVENT = _words(
    "event occurred happened occurrence ts timestamp when started start begin began departed paid "
    "ordered measured sampled observed clicked"
)
_ARRIVAL = _words(
    "received ingested ingest ingestion landed landing arrived arrival loaded inserted stored "
    "processed collected synced uploaded recorded logged server published delivered written "
    "reported"
)
_NOT_EVENT = _words("end ended due expires expiry expiration birth valid updated")
_KEY = _words(
    "device sensor card user customer account origin host hostname station machine vehicle player "
    "client member merchant store shop symbol ticker meter asset robot truck car driver patient "
    "tenant site node server pump turbine session visitor subscriber key airport product sku "
    "employee imei iban mac ip username email"
)
_IDENTIFIER = _words("id ids uuid guid no number nr code zip phone ean")
_KIND = _words("status type kind currency level state method unit version name")
_MONEY = _words(
    "amount price cost total fee balance payment revenue tax charge salary discount eur usd gbp "
    "chf subtotal tip fare"
)


def words(name: str) -> frozenset[str]:
    """The words of a name such as `paidAt` or `paid_at`, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def is_time(name: str) -> bool:
    """Whether a name is a time's: `ts`, `paid_at`, `eventtime`."""
    return any(word in _TIME or word.endswith(_TIME_ENDINGS) for word in words(name))


def is_arrival(name: str) -> bool:
    """Whether a name says that the record arrived somewhere at that time."""
    return bool(words(name) & _ARRIVAL)


def is_identifier(name: str) -> bool:
    """Whether a name is that of a number that identifies something: `card`, `order_id`, `zip`."""
    return not is_time(name) and bool(words(name) & (_KEY | _IDENTIFIER))


def is_money(name: str) -> bool:
    """Whether a name is that of an amount of money."""
    return bool(words(name) & _MONEY)


def event_score(name: str) -> int:
    """A score that is higher the more a name sounds like an event's time."""
    parts = words(name)
    return 2 * bool(parts & _EVENT) - 3 * bool(parts & _NOT_EVENT) - 3 * is_arrival(name)


def key_score(name: str) -> int:
    """A score that is higher the more a name sounds like a key."""
    parts = words(name)
    of_key, of_id, of_kind = bool(parts & _KEY), bool(parts & _IDENTIFIER), bool(parts & _KIND)
    return 4 * of_key + 2 * of_id - 3 * (of_kind and not of_key)
