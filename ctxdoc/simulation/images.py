"""Images of a session: where each was sent first, how often since, and what that cost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from ctxdoc.images.ask import faults_of, faults_of_many
from ctxdoc.images.file import Picture, iter_images, picture_of
from ctxdoc.images.size import image_tokens
from ctxdoc.ledger.block_costs import nano, write_rate
from ctxdoc.pricing.cost import NANO
from ctxdoc.pricing.rates import find_rates
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.history.messages import Call, Message, Session


class SessionImage(Struct, frozen=True, kw_only=True):
    """An image of a session."""

    source: str
    """The log that it is in."""
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


def images_of(session: Session, usages: list[Usage]) -> list[SessionImage]:
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
    cost: Decimal | None = Decimal(0)


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
            paid = _paid(call, (start - size, start), _share(segment, size, life.tokens), usage)
            life.cost = None if life.cost is None or paid is None else life.cost + paid


def _tokens(data: str | None, tier: str) -> int | None:
    picture = picture_of(data) if data is not None else None
    return image_tokens(picture.width, picture.height, tier) if picture else None


def _share(segment: Segment, size: int, tokens: int | None) -> Decimal | None:
    """What an image is of its block: all of an image block, of a tool result its own tokens."""
    if segment.kind == "image":
        return Decimal(1)
    return None if tokens is None or not size else min(Decimal(1), Decimal(tokens) / size)


def _paid(
    call: Call, block: tuple[int, int], share: Decimal | None, usage: Usage
) -> Decimal | None:
    """What a share of a block cost in one request, in nanodollars per million."""
    rates = find_rates(call.tariff, usage.input)
    if rates is None or share is None:
        return None
    start, end = block
    read = max(0, min(end, usage.cache_read) - start)
    cached = usage.cache_read + usage.cache_write
    written = max(0, min(end, cached) - max(start, usage.cache_read))
    return share * (
        read * nano(rates.cache_read)
        + written * write_rate(usage, rates)
        + (end - start - read - written) * nano(rates.input)
    )


def _finished(lives: list[_Life]) -> list[SessionImage]:
    first: dict[str, int] = {}
    found = []
    for place, life in enumerate(lives, start=1):
        earlier = first.setdefault(life.data, place) if life.data is not None else place
        found.append(
            SessionImage(
                source=life.call.request.source if life.call.request else "",
                request=life.call.number,
                json_path=life.path,
                picture=picture_of(life.data) if life.data is not None else None,
                tokens=life.tokens,
                tier=life.call.rule.image_tier,
                model=life.call.tariff.model,
                times=life.times,
                cost=None if life.cost is None else life.cost / (NANO * 1_000_000),
                same_as=earlier if earlier != place else None,
            )
        )
    return found


def request_faults(session: Session) -> Iterator[str]:
    """What the API would refuse of the images of a log's requests, each rule with the first request."""
    seen: dict[str, tuple[int, int]] = {}
    for call in session.calls:
        for text in _faults_of(call):
            first, count = seen.get(text, (call.number, 0))
            seen[text] = (first, count + 1)
    for text, (first, count) in seen.items():
        more = f" and {count - 1:,} more" if count > 1 else ""
        yield f"request #{first}{more}: {text}"


def _faults_of(call: Call) -> Iterator[str]:
    """What is wrong with the images of a request together, and with each of them."""
    pictures = list(_pictures(call))
    yield from faults_of_many(pictures, call.rule.has_large_window)
    for picture in pictures:
        yield from faults_of(picture)


def _pictures(call: Call) -> Iterator[Picture]:
    pictured = (s for message in call.messages for s in message.segments if s.pictured)
    for segment in pictured:
        for _, data in iter_images(segment.value):
            picture = picture_of(data) if data is not None else None
            if picture:
                yield picture
