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
    curves = []
    for tier, (edge, budget) in TIERS.items():
        xs = [side for side in EDGES if side * short // long >= 1] or [long]
        # Beyond the limits every size is made the same one.
        most = image_tokens(long * LARGE, short * LARGE, tier)
        sizes = [(side, short_side(side, long, short)) for side in xs]
        ys = [
            float(image_tokens(*size, tier) if resized(*size, tier) == size else most)
            for size in sizes
        ]
        curves.append(
            Curve(
                label=f"{tier} resolution: at most {edge:,} px, {budget:,} tokens",
                xs=tuple(map(float, xs)),
                ys=tuple(ys),
            )
        )
    old = [(float(side), float(old_tokens(side, short_side(side, long, short)))) for side in EDGES]
    old = [point for point in old if point[1] <= max(curves[-1].ys)]
    curves.append(
        Curve(
            label="old rule w·h/750",
            xs=tuple(x for x, _ in old),
            ys=tuple(y for _, y in old),
        )
    )
    here = float(bill.tokens(first))
    curves.append(
        Curve(
            label=f"{first.width:,} × {first.height:,}: {here:,.0f} tokens",
            xs=(float(long), float(long)),
            ys=(0.0, here),
        )
    )
    return Curves(
        title=f"Tokens of an image of {first.width:,} : {first.height:,} (steps of {PATCH} pixels)",
        axis="pixels of the long side",
        panels=(Panel(label="tokens", unit="tokens", curves=tuple(curves)),),
    )
