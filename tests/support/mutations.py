"""A seeded mutator of bytes, and texts of hostile pieces, for fuzzing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def mutated(random: Random, whole: bytes, pieces: Sequence[bytes], most: int = 4) -> bytes:
    """Changes bytes at a few offsets: flips, cuts, doubles, swaps, and inserts pieces.

    Args:
        random: The source of all choices, so that a seed gives one result.
        whole: The bytes to change.
        pieces: What to insert, such as signs that the format gives a meaning.
        most: The most changes.
    """
    data = bytearray(whole)
    for _ in range(random.randint(1, most)):
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + random.choice((1, 1, 2, 8, 40)))
        match random.randrange(7):
            case 0 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 1 if at < len(data):
                data[at] = random.randrange(256)
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * random.choice((1, 1, 2, 5))
            case 4:
                other = random.randrange(len(data) + 1)
                data[other:other] = data[at:end]
            case 5 if random.random() < 0.2:
                del data[at:]
            case _:
                data[at:at] = random.choice(pieces)
    return bytes(data)
