"""JSON as values and values as JSON, numbers as they were spelled."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Raw

Json: TypeAlias = None | bool | int | str | Raw | list["Json"] | dict[str, "Json"]

_decoder = msgspec.json.Decoder(float_hook=lambda text: Raw(text.encode()))
_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")


def decode(raw: Raw | bytes) -> Json:
    """JSON as values; a number with a fraction or exponent stays as it was spelled.

    Raises msgspec.DecodeError.
    """
    value: Json = _decoder.decode(raw)
    return value


def encode(value: Json) -> bytes:
    """Compact UTF-8 JSON in the order of the value."""
    return _encoder.encode(value)


def encode_sorted(value: Json) -> bytes:
    """Compact UTF-8 JSON with the members of every object sorted."""
    return _sorted_encoder.encode(value)


def plain(value: Json) -> Json:
    """The value with numbers in place of their spelling, for libraries that know only those."""
    match value:
        case Raw():
            try:
                number: Json = msgspec.json.decode(bytes(value))
            except msgspec.DecodeError:
                return bytes(value).decode()
            return number
        case list():
            return [plain(item) for item in value]
        case dict():
            return {name: plain(member) for name, member in value.items()}
        case _:
            return value
