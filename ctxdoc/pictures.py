"""The images of a session: where each was sent first, how often since, and what that cost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from ctxdoc.history import Call, Message, Session
from ctxdoc.images import (
    MANY,
    MANY_SIDE,
    MOST_BASE64,
    MOST_SIDE,
    Picture,
    image_tokens,
    iter_images,
    picture_of,
)
from ctxdoc.model import Usage
from ctxdoc.pricing import NANO, find_rates

MOST_IMAGES = {False: 100, True: 600}
"""Images of one request, by whether the model has the larger window (vision page, 2026-08-22)."""
LARGE_WINDOW = 1_000_000


class Sent(Struct, frozen=True, kw_only=True):
    """An image of a session."""

    request: int
    """Number of the first request that sent it, from 1."""
    json_path: str
    picture: Picture | None
    """None where only a reference to it was sent."""
    tokens: int | None
    """By its size and the model's tier."""
    tier: str
    model: str
    times: int
    """Requests that sent it."""
    cost: Decimal | None
    """USD over all of them: its share of what was read, written and paid in full."""
    same_as: int | None
    """The place in the list, from 1, of an earlier image with the same bytes."""


def images_of(session: Session, usages: list[Usage]) -> list[Sent]:
    """The images in the order in which they were sent first; `usages` are those of the requests."""
    found: dict[tuple[int, str], _Life] = {}
    for call, usage in zip(session.calls, usages, strict=True):
        end = call.head.size
        for message in call.messages:
            end += message.size
            if any(segment.pictured for segment in message.segments):
                _add(found, call, message, end - message.size, usage)
    return _finished(list(found.values()))


class _Life(Struct):
    """An image while its requests are gone through."""

    call: Call
    path: str
    data: str | None
    tokens: int | None
    times: int = 0
    cost: int | None = 0


def _add(
    found: dict[tuple[int, str], _Life], call: Call, message: Message, start: int, usage: Usage
) -> None:
    """One more sending of a message's images."""
    for segment, size in zip(message.segments, message.tokens, strict=True):
        start += size
        if not segment.pictured:
            continue
        for path, data in iter_images(segment.value):
            key = (id(message), segment.pointer + path)
            life = found.get(key)
            if life is None:
                tokens = _tokens(data, call.rule.image_tier)
                life = found[key] = _Life(call, segment.pointer + path, data, tokens)
            life.times += 1
            paid = _paid(call, start - size, start, life.tokens, usage)
            life.cost = None if life.cost is None or paid is None else life.cost + paid


def _tokens(data: str | None, tier: str) -> int | None:
    picture = picture_of(data) if data is not None else None
    return image_tokens(picture.width, picture.height, tier) if picture else None


def _paid(call: Call, start: int, end: int, tokens: int | None, usage: Usage) -> int | None:
    """What an image's share of its block cost in one request, in millionths of nanodollars."""
    rates = find_rates(call.tariff, usage.input)
    if rates is None or tokens is None or end <= start:
        return None
    read = max(0, min(end, usage.cache_read) - start)
    cached = usage.cache_read + usage.cache_write
    written = max(0, min(end, cached) - max(start, usage.cache_read))
    write = (
        rates.cache_write_1h
        if usage.cache_write_1h > usage.cache_write_5m
        else rates.cache_write_5m
    )
    total = Decimal(0)
    for part, rate in (
        (read, rates.cache_read),
        (written, write),
        (end - start - read - written, rates.input),
    ):
        if part and rate is None:
            return None
        total += part * (rate or Decimal(0))
    share = min(Decimal(1), Decimal(tokens) / (end - start))
    return int(total * share * NANO)


def _finished(lives: list[_Life]) -> list[Sent]:
    first: dict[str, int] = {}
    found = []
    for place, life in enumerate(lives, start=1):
        earlier = first.setdefault(life.data, place) if life.data is not None else place
        found.append(
            Sent(
                request=life.call.number,
                json_path=life.path,
                picture=picture_of(life.data) if life.data is not None else None,
                tokens=life.tokens,
                tier=life.call.rule.image_tier,
                model=life.call.tariff.model,
                times=life.times,
                cost=None if life.cost is None else Decimal(life.cost) / (NANO * 1_000_000),
                same_as=earlier if earlier != place else None,
            )
        )
    return found


def faults_of(picture: Picture) -> Iterator[str]:
    """What the API would refuse of one image (vision page, 2026-08-22)."""
    if max(picture.width, picture.height) > MOST_SIDE:
        yield f"a side is over {MOST_SIDE:,} pixels: the API refuses it"
    if picture.width < 1 or picture.height < 1:
        yield "it has no pixels"
    encoded = -(-picture.size // 3) * 4
    if encoded > MOST_BASE64:
        yield f"{encoded:,} bytes as base64 are over {MOST_BASE64:,}"
    elif encoded > MOST_BASE64 // 2:
        yield f"{encoded:,} bytes as base64 are over the {MOST_BASE64 // 2:,} of Bedrock and Google Cloud"


def faults_of_many(pictures: list[Picture], large_window: bool) -> Iterator[str]:
    """What the API would refuse of images that one request holds."""
    most = MOST_IMAGES[large_window]
    if len(pictures) > most:
        yield f"{len(pictures):,} images in one request are over {most}"
    if len(pictures) > MANY and any(max(p.width, p.height) > MANY_SIDE for p in pictures):
        yield f"more than {MANY} images, and a side of one is over {MANY_SIDE:,} pixels"


def request_faults(session: Session) -> Iterator[str]:
    """What the API would refuse of the images of a log's requests, each rule with the first request."""
    seen: dict[str, tuple[int, int]] = {}
    for call in session.calls:
        pictures = [
            found
            for message in call.messages
            for segment in message.segments
            if segment.pictured
            for _, data in iter_images(segment.value)
            if data is not None and (found := picture_of(data))
        ]
        large = call.rule.window >= LARGE_WINDOW
        for text in (
            *faults_of_many(pictures, large),
            *(t for p in pictures for t in faults_of(p)),
        ):
            first, count = seen.get(text, (call.number, 0))
            seen[text] = (first, count + 1)
    for text, (first, count) in seen.items():
        more = f" and {count - 1:,} more" if count > 1 else ""
        yield f"request #{first}{more}: {text}"
