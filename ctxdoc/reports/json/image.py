"""The document `ctxdoc/image/1`: keys in a fixed order, money as strings, unknown as null."""

from __future__ import annotations

from ctxdoc.images.ask import AskedImage, faults_of
from ctxdoc.images.file import Picture
from ctxdoc.images.size import (
    PDF_TEXT,
    TIERS,
    old_tokens,
    resized,
    smaller_sizes,
)
from ctxdoc.outputs.numbers import money_json
from ctxdoc.reports.bill import Bill
from ctxdoc.request.codec import Json
from ctxdoc.simulation.images import SessionImage

SCHEMA = "ctxdoc/image/1"


def asked_json(each: AskedImage, bill: Bill) -> Json:
    """An image or a PDF of which the size was asked."""
    if each.pages is not None:
        budget = TIERS[bill.rule.image_tier][1]
        return {
            "source": each.source,
            "model": bill.model,
            "pages": each.pages,
            "tokens_at_least": each.pages * PDF_TEXT[0],
            "tokens_at_most": each.pages * (PDF_TEXT[1] + budget),
            "warnings": list(each.warnings),
            "notes": list(each.notes),
        }
    tier, tokens, rates = bill.rule.image_tier, bill.tokens(each), bill.rates
    width, height = resized(each.width, each.height, tier)
    return {
        "source": each.source,
        "width": each.width,
        "height": each.height,
        "model": bill.model,
        "tier": tier,
        "sent_width": width,
        "sent_height": height,
        "tokens": tokens,
        "tokens_old_rule": old_tokens(each.width, each.height),
        "cost": money_json(bill.cost(tokens, rates.input if rates else None)),
        "write_cost": money_json(bill.cost(tokens, rates.cache_write_5m if rates else None)),
        "per_turn_cost_cached": money_json(bill.cost(tokens, rates.cache_read if rates else None)),
        "suggestions": _smaller_json(each.width, each.height, tier),
        "kind": each.picture.kind if each.picture else None,
        "bytes": each.picture.size if each.picture else None,
        "warnings": list(each.warnings),
        "notes": list(each.notes),
        "tokens_counted": each.counted,
    }


def sent_json(each: SessionImage) -> Json:
    """An image of a log, over its life."""
    size = _size_json(each.picture, each.tier) if each.picture else dict.fromkeys(SIZE)
    picture = each.picture
    return {
        "source": each.source,
        "width": size["width"],
        "height": size["height"],
        "model": each.model,
        "tier": each.tier,
        "sent_width": size["sent_width"],
        "sent_height": size["sent_height"],
        "tokens": each.tokens,
        "tokens_old_rule": size["tokens_old_rule"],
        "kind": picture.kind if picture else None,
        "bytes": picture.size if picture else None,
        "request": each.request,
        "json_path": each.json_path,
        "times_sent": each.times,
        "lifetime_tokens": None if each.tokens is None else each.tokens * each.times,
        "lifetime_cost": money_json(each.cost),
        "same_as": each.same_as,
        "suggestions": _smaller_json(picture.width, picture.height, each.tier) if picture else [],
        "warnings": list(faults_of(picture)) if picture else [],
    }


SIZE = ("width", "height", "sent_width", "sent_height", "tokens_old_rule")
"""What nobody knows of an image that is not in the log."""


def _size_json(picture: Picture, tier: str) -> dict[str, Json]:
    sent = resized(picture.width, picture.height, tier)
    old = old_tokens(picture.width, picture.height)
    return dict(zip(SIZE, (picture.width, picture.height, *sent, old), strict=True))


def _smaller_json(width: int, height: int, tier: str) -> list[Json]:
    return [
        {"width": size.width, "height": size.height, "tokens": size.tokens}
        for size in smaller_sizes(width, height, tier)
    ]
