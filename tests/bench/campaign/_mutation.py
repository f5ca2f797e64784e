"""Ways to spoil bytes that the campaigns share."""

from __future__ import annotations

import random

NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)


def mutated(rng: random.Random, content: bytes, head: int = 200) -> bytes:
    """`content` with one to four changes, half of them within its first `head` bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not data:
            break
        at = rng.randrange(min(head, len(data)) if rng.random() < 0.5 else len(data))
        match rng.randrange(7):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                number = rng.choice(NUMBERS)
                data[at : at + 4] = number.to_bytes(4, rng.choice(("little", "big")))
            case 3:
                del data[at:]
            case 4:
                del data[at : at + rng.choice((1, 2, 4, 50, 500))]
            case 5:
                data[at:at] = data[at : at + rng.choice((1, 4, 50, 2_000))] * rng.choice((1, 2, 20))
            case _:
                data[at:at] = rng.randbytes(rng.choice((1, 3, 40)))
    return bytes(data)
