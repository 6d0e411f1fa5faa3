"""Damage to a log: a value of another kind at a random place, a member less, or the end cut off."""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import yaml

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 10**10, 2**63, -(2**70), 10**400, 1.5, -0.25, 1e308, float("inf"),
    float("nan"), "", "x", "{", "{}", "[1]", "null", "\ud800", "\x00", "data: {}", "attachment://x",
    "2026-11-02T09:00:00Z", "\x1f\x8b", "(\xb5/\xfd", "eA==", [], [None], [[]], [{}], [1, "x", None],
    {}, {"": None}, {"type": []}, {"value": {"intValue": []}}, {"hash": []}, b"x", b"(\xb5/\xfd\x00",
    b"\x1f\x8b\x08", b"x\x9c\x03",
)  # fmt: skip
"""Values of every kind, among them those that mean something to one of the readers."""
MAGIC = b"httprr trace v1\n"


def mutations(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Damaged copies of a file: the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        damaged = data
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            damaged = _mutated_file(damaged, rng)
        yield (
            damaged[: rng.randrange(len(damaged))] if damaged and not rng.randrange(12) else damaged
        )


def _mutated_file(data: bytes, rng: random.Random) -> bytes:
    if data.startswith(MAGIC):
        return _mutated_http(data, rng)
    try:
        lines = [json.loads(line) for line in data.splitlines() if line.strip()]
        found = mutated(lines, rng)
        return b"\n".join(map(_json, found if isinstance(found, list) else [found]))
    except (ValueError, TypeError):
        pass
    try:
        return _json(mutated(json.loads(data), rng))
    except (ValueError, RecursionError):
        pass
    try:
        documents = [each for each in yaml.load_all(data, yaml.CSafeLoader) if each is not None]
    except (yaml.YAMLError, ValueError):
        return data
    damaged = [mutated(each, rng) for each in documents]
    return _yaml(damaged) if damaged else data


def _json(value: Any) -> bytes:
    """JSON; the bytes and the dates of YAML, which it has not, as text."""
    return json.dumps(value, default=str).encode()


def _yaml(documents: list[Any]) -> bytes:
    try:
        text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False)
    except UnicodeEncodeError:
        # Half of a surrogate pair: JSON has an escape for it, which YAML reads too.
        return b"\n---\n".join(map(_json, documents))
    return str(text).encode()


def _mutated_http(data: bytes, rng: random.Random) -> bytes:
    """The body of a request or a response, with the lengths as they are then."""
    lengths, _, rest = data.removeprefix(MAGIC).partition(b"\n")
    try:
        first = int(lengths.split()[0])
    except (ValueError, IndexError):
        return data
    parts = [rest[:first], rest[first:]]
    which = rng.randrange(2)
    head, blank, body = parts[which].partition(b"\n\n")
    text = mutated_text(body.decode("utf-8", "replace"), rng).encode("utf-8", "replace")
    lines = [line for line in head.split(b"\n") if not line.lower().startswith(b"content-length")]
    parts[which] = b"\n".join((*lines, b"Content-Length: %d" % len(text))) + blank + text
    return MAGIC + b"%d %d\n" % (len(parts[0]), len(parts[1])) + b"".join(parts)


def mutated(value: Any, rng: random.Random) -> Any:
    """The value with one place of it replaced, or one member taken out."""
    if isinstance(value, str) and len(value) > 1 and rng.randrange(4):
        return mutated_text(value, rng)
    if not isinstance(value, list | dict) or not value or not rng.randrange(9):
        return rng.choice(ODD)
    keys = list(range(len(value))) if isinstance(value, list) else list(value)
    key = rng.choice(keys)
    copy = value.copy()
    match rng.randrange(12):
        case 0:
            del copy[key]
        case 1 if isinstance(copy, list):
            copy.insert(key, rng.choice(ODD))
        case _:
            copy[key] = mutated(copy[key], rng)
    return copy


def mutated_text(text: str, rng: random.Random) -> str:
    """A text with JSON inside of it: bare, in the events of a stream, or in base64."""
    if text.startswith(("{", "[")):
        return _dumped(text, rng) or str(rng.choice(ODD))
    if "data: " in text:
        lines = text.split("\n")
        events = [index for index, line in enumerate(lines) if line.startswith("data: {")]
        if events:
            index = rng.choice(events)
            lines[index] = f"data: {_dumped(lines[index][6:], rng) or '{'}"
            return "\n".join(lines)
    try:
        inside = b64decode(text, validate=True).decode()
    except ValueError:
        return str(rng.choice(ODD))
    return b64encode(mutated_text(inside or " ", rng).encode("utf-8", "replace")).decode()


def _dumped(text: str, rng: random.Random) -> str:
    try:
        return _json(mutated(json.loads(text), rng)).decode()
    except (ValueError, RecursionError):
        return ""
