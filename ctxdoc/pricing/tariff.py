"""What decides the rates of a request: model, date, place, batch, speed."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache

from msgspec import Struct

from ctxdoc.providers.rules import short_model_id
from ctxdoc.request.request import Request
from ctxdoc.request.response import Response

BATCH_FACTOR = Decimal("0.5")
"""Half price on every category (pricing page, 2026-10-10); the library knows batch prices only
from 2026-10-14 on."""


PLACE_FACTOR = Decimal("1.1")
"""`inference_geo: us`, models from 4.6 on, and regional profiles of Bedrock, from 4.5 on (pricing page,
2026-10-10); a request pays one of them."""


US_SINCE, REGIONAL_SINCE = (4, 6), (4, 5)


_REGIONAL = re.compile(r"(?:^|[/:])(?:us|eu|apac|jp|au)\.anthropic\.", re.ASCII)


_VERSION = re.compile(r"^claude-(?:[a-z]+)-(\d+)(?:-(\d{1,2}))?$", re.ASCII)


class Tariff(Struct, frozen=True, kw_only=True):
    """How one request is billed."""

    model: str
    day: date
    fast: bool = False
    batch: bool = False
    us_only: bool = False
    regional: bool = False
    """Whether a regional profile of Bedrock was called."""
    million: bool = False
    """Whether the request asked for a larger window than the model has by itself."""


def tariff_of(request: Request) -> Tariff:
    """The tariff of a recorded request; without a time, that of today."""
    response = request.response or NO_RESPONSE
    model = response.model or request.model
    return _tariff(
        model,
        (request.at or datetime.now(UTC)).astimezone(UTC).date(),
        _is_fast(request, response, model),
        response.batch,
        response.us_only or _asks(request, "inference_geo", b'"us"'),
        is_regional(request.model) or is_regional(model),
        "context-1m" in request.headers.get("anthropic-beta", ""),
    )


NO_RESPONSE = Response()
"""In the place of an answer that the log does not hold."""


def _is_fast(request: Request, response: Response, model: str) -> bool:
    """Whether a request ran in fast mode: as its answer says, or else as it was asked."""
    if response.speed:
        return response.speed == "fast"
    # These ran at the standard speed when they were asked for the fast one (facts of fast mode).
    return _asks(request, "speed", b'"fast"') and version_of(model) != NEVER_FAST


def _asks(request: Request, member: str, value: bytes) -> bool:
    """Whether the body asks for a value by one of its members."""
    return request.body is not None and bytes(getattr(request.body, member)) == value


NEVER_FAST = (4, 6)
"""Version whose models run at the standard speed although they are asked for the fast one (fast-mode page,
2026-10-10)."""


@lru_cache(maxsize=1024)
def _tariff(
    model: str, day: date, fast: bool, batch: bool, us_only: bool, regional: bool, million: bool
) -> Tariff:
    """One value for all requests that are billed alike."""
    return Tariff(
        model=model,
        day=day,
        fast=fast,
        batch=batch,
        us_only=us_only,
        regional=regional,
        million=million,
    )


@lru_cache(maxsize=256)
def is_regional(model: str) -> bool:
    """Whether a model is spelled as a regional profile of Bedrock, be it inside of an ARN; `global.` is
    none."""
    return _REGIONAL.search(model) is not None


@lru_cache(maxsize=256)
def version_of(model: str) -> tuple[int, int] | None:
    """The version in a model's name; None where it has none."""
    found = _VERSION.match(short_model_id(model))
    return (int(found[1]), int(found[2] or 0)) if found else None


def is_since(model: str, version: tuple[int, int]) -> bool:
    """Whether a model is of that version or a later one; one without a number is a preview of later ones."""
    known = version_of(model)
    return known >= version if known else short_model_id(model) == "claude-mythos-preview"
