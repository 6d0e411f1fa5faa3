"""The tokens of an image over its size, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from ctxdoc.images.ask import AskedImage
from ctxdoc.images.size import (
    PATCH,
    TIERS,
    image_tokens,
    old_tokens,
    resized,
    short_side,
)
from ctxdoc.outputs.report import Curve, Curves, Panel
from ctxdoc.reports.bill import Bill

EDGES = range(14, 3_001, 2)


LARGE = 10_000
"""Makes any size larger than all limits."""


def curve_of(asked: Sequence[AskedImage], bill: Bill) -> Curves:
    """Tokens over the long side for the aspect of the first image, in both tiers."""
    first = asked[0]
    long, short = max(first.width, first.height), min(first.width, first.height)
    tiers = [_tier_curve(tier, long, short) for tier in TIERS]
    # What is higher than the last tier would only press the curves flat.
    old = _old_rule_curve(long, short, most=max(tiers[-1].ys))
    here = float(bill.tokens(first))
    asked_for = Curve(
        label=f"{first.width:,} × {first.height:,}: {here:,.0f} tokens",
        xs=(float(long), float(long)),
        ys=(0.0, here),
    )
    return Curves(
        title=f"Tokens of an image of {first.width:,} : {first.height:,} (steps of {PATCH} pixels)",
        axis="pixels of the long side",
        panels=(Panel(label="tokens", unit="tokens", curves=(*tiers, old, asked_for)),),
    )


def _tier_curve(tier: str, long: int, short: int) -> Curve:
    edge, budget = TIERS[tier]
    sides = [side for side in EDGES if side * short // long >= 1] or [long]
    # Beyond the limits every size is made the same one.
    most = image_tokens(long * LARGE, short * LARGE, tier)
    sizes = [(side, short_side(side, long, short)) for side in sides]
    return Curve(
        label=f"{tier} resolution: at most {edge:,} px, {budget:,} tokens",
        xs=tuple(map(float, sides)),
        ys=tuple(
            float(image_tokens(*size, tier) if resized(*size, tier) == size else most)
            for size in sizes
        ),
    )


def _old_rule_curve(long: int, short: int, *, most: float) -> Curve:
    points = [
        (float(side), float(old_tokens(side, short_side(side, long, short)))) for side in EDGES
    ]
    shown = [point for point in points if point[1] <= most]
    return Curve(
        label="old rule w·h/750", xs=tuple(x for x, _ in shown), ys=tuple(y for _, y in shown)
    )
