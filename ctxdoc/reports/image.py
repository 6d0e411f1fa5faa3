"""What images cost: by their size, over the turns that send them again, and how to pay less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.images.ask import AskedImage, faults_of
from ctxdoc.images.size import (
    PATCH,
    PDF_TEXT,
    TIERS,
    Smaller,
    image_tokens,
    next_step,
    old_tokens,
    resized,
    short_side,
    smaller_sizes,
)
from ctxdoc.outputs.numbers import counted, money_json, money_text, tokens_text
from ctxdoc.outputs.report import Curve, Curves, Fields, Headline, Notes, Panel, Part, Report, Table
from ctxdoc.outputs.report import Row as Line
from ctxdoc.pricing.rates import MILLION
from ctxdoc.pricing.table import Rates
from ctxdoc.providers import ModelRule
from ctxdoc.request.codec import Json
from ctxdoc.simulation.images import SessionImage

SCHEMA = "ctxdoc/image/1"
MOST_LISTED = 60
EDGES = range(14, 3_001, 2)
LARGE = 10_000
"""Makes any size larger than all limits."""


class Bill(Struct, frozen=True, kw_only=True):
    """The model that prices are for, and how often an image is sent."""

    model: str
    rule: ModelRule
    rates: Rates | None
    turns: int

    def cost(self, tokens: int, rate: Decimal | None) -> Decimal | None:
        """USD for so many tokens."""
        return None if rate is None else tokens * rate / MILLION


def image_report(asked: Sequence[AskedImage], bill: Bill, faults: Sequence[str] = ()) -> Report:
    """The report on sizes and files."""
    return Report(
        parts=tuple(_parts(asked, bill, faults)),
        make_data=lambda: {
            "schema": SCHEMA,
            "images": [_json(each, bill) for each in asked],
            "warnings": list(faults),
        },
    )


def _parts(asked: Sequence[AskedImage], bill: Bill, faults: Sequence[str]) -> Iterator[Part]:
    sized = [each for each in asked if each.pages is None]
    tokens = sum(_tokens(each, bill) for each in sized)
    edge, budget = TIERS[bill.rule.image_tier]
    under = (
        f"{bill.model}, {bill.rule.image_tier} resolution: at most {edge:,} px a side and {budget:,} "
        f"tokens; ⌈w/{PATCH}⌉·⌈h/{PATCH}⌉ tokens"
    )
    rates = bill.rates
    first = bill.cost(tokens, rates.input if rates else None)
    if sized:
        text = f"{counted(len(sized), 'image')}: {tokens_text(tokens)} tokens"
        text += f", {money_text(first)} to send" if first is not None else ""
        yield Headline("IMAGES", "plain", text, under)
    for each in asked:
        yield from _pdf(each, bill) if each.pages is not None else _image(each, bill)
    if faults:
        yield Notes("Warnings", tuple(faults))
    if sized:
        yield curve_of(sized, bill)


def _tokens(each: AskedImage, bill: Bill) -> int:
    return image_tokens(each.width, each.height, bill.rule.image_tier)


def _image(each: AskedImage, bill: Bill) -> Iterator[Part]:
    tier, tokens = bill.rule.image_tier, _tokens(each, bill)
    width, height = resized(each.width, each.height, tier)
    kept = (width, height) == (each.width, each.height)
    sent = "sent as it is" if kept else f"the API makes it {width:,} × {height:,}"
    kind = f" {each.picture.kind}, {each.picture.size:,} bytes" if each.picture else ""
    columns, rows = -(-width // PATCH), -(-height // PATCH)
    other = "high" if tier == "standard" else "standard"
    lines = [
        Line("Image", f"{each.source}{kind}" if each.picture else each.source, strong=True),
        Line("Size", f"{each.width:,} × {each.height:,}; {sent}"),
        Line(
            "Tokens",
            f"{columns} · {rows} = {tokens:,} ({other} resolution: "
            f"{image_tokens(each.width, each.height, other):,}; the old rule w·h/750 says "
            f"{old_tokens(each.width, each.height):,})",
        ),
        *([] if each.counted is None else [Line("Counted", f"{each.counted:,} by the API")]),
        Line("Money", _money(tokens, bill)),
        *(Line("", note) for note in (*each.warnings, *each.notes)),
    ]
    lines += [Line("Smaller" if not n else "", text) for n, text in enumerate(_smaller(each, bill))]
    yield Fields(tuple(lines))


def _money(tokens: int, bill: Bill) -> str:
    rates = bill.rates
    if rates is None:
        return f"- ({bill.model} has no price)"
    once = bill.cost(tokens, rates.input)
    parts = [f"{money_text(once)} once"]
    later = bill.turns - 1
    if later > 0:
        read, written = bill.cost(tokens, rates.cache_read), bill.cost(tokens, rates.cache_write_5m)
        bare = bill.cost(tokens * bill.turns, rates.input)
        cached = written + read * later if read is not None and written is not None else None
        parts = [
            f"{money_text(written)} to write and {money_text(read)} in each later turn read from the "
            f"cache, {money_text(once)} in each without one",
            f"over {bill.turns} turns {money_text(cached)}, without a cache {money_text(bare)}",
        ]
    return "; ".join(parts)


def _smaller(each: AskedImage, bill: Bill) -> Iterator[str]:
    tier, tokens = bill.rule.image_tier, _tokens(each, bill)
    sent = resized(each.width, each.height, tier)
    step = next_step(each.width, each.height, tier)
    if step is None:
        yield "one patch: nothing to save"
        return
    for size in smaller_sizes(each.width, each.height, tier):
        yield f"{_size(size)}: {size.tokens:,} tokens, saves {1 - size.tokens / tokens:.0%}"
    yield (
        f"nothing is saved down to {max(step.width, step.height) + 1:,} px on the long side "
        f"(from {max(sent):,}); the first step is {_size(step)}"
    )


def _size(size: Smaller) -> str:
    return f"{size.width:,} × {size.height:,}"


def _pdf(each: AskedImage, bill: Bill) -> Iterator[Part]:
    pages = each.pages or 0
    budget = TIERS[bill.rule.image_tier][1]
    low, high = PDF_TEXT
    yield Fields(
        (
            Line("PDF", each.source, strong=True),
            Line(
                "Tokens",
                f"{counted(pages, 'page')}: about {pages * low:,} to {pages * high:,} of text, and "
                f"each page as an image of at most {budget:,}: up to {pages * (high + budget):,} "
                "(estimated; pdf-support page, 2026-08-22)",
            ),
            *(Line("", note) for note in (*each.warnings, *each.notes)),
        )
    )


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
    here = float(_tokens(first, bill))
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


def _json(each: AskedImage, bill: Bill) -> Json:
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
    tier, tokens, rates = bill.rule.image_tier, _tokens(each, bill), bill.rates
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
        "suggestions": [
            {"width": size.width, "height": size.height, "tokens": size.tokens}
            for size in smaller_sizes(each.width, each.height, tier)
        ],
        "kind": each.picture.kind if each.picture else None,
        "bytes": each.picture.size if each.picture else None,
        "warnings": list(each.warnings),
        "notes": list(each.notes),
        "tokens_counted": each.counted,
    }


def log_report(
    sent: Sequence[SessionImage],
    source: str,
    requests: int,
    faults: Sequence[str],
    documents: int = 0,
) -> Report:
    """The report on the images of a log, in which so many documents stand beside them."""
    return Report(
        parts=tuple(_log_parts(sent, source, requests, faults, documents)),
        make_data=lambda: {
            "schema": SCHEMA,
            "images": [_sent_json(each) for each in sent],
            "documents": documents,
            "warnings": list(faults),
        },
    )


def _log_parts(
    sent: Sequence[SessionImage], source: str, requests: int, faults: Sequence[str], documents: int
) -> Iterator[Part]:
    under = f"{source}: {counted(requests, 'request')}"
    if not sent:
        yield Headline("IMAGES", "plain", "no request of the log holds an image", under)
        yield from _uncounted(0, documents)
        return
    known = [each for each in sent if each.tokens is not None]
    again = sum((each.tokens or 0) * each.times for each in known)
    costs = [each.cost for each in sent]
    whole = sum((cost or Decimal(0) for cost in costs), Decimal(0))
    price = f", {money_text(whole)} over their life" if None not in costs else ""
    tokens = f", sent to {tokens_text(again)} tokens in all" if known else "; no size is known"
    yield Headline("IMAGES", "plain", f"{counted(len(sent), 'image')}{tokens}{price}", under)
    several = len({each.source for each in sent}) > 1
    order = sorted(range(len(sent)), key=lambda i: (-(sent[i].cost or Decimal(0)), i))
    yield Table(
        title="",
        columns=(
            "#",
            "request",
            "size",
            "as sent",
            "bytes",
            "tokens",
            "times",
            "cost",
            "bytes of",
            *(["log"] if several else []),
            "JSON path",
        ),
        rows=tuple(
            tuple(_log_row(place + 1, sent[place], several)) for place in order[:MOST_LISTED]
        ),
        optional=(4, 3, 8),
    )
    left = len(sent) - MOST_LISTED
    if left > 0:
        yield Notes("", (f"{left:,} more are in --format json",))
    yield from _uncounted(len(sent) - len(known), documents)
    if faults:
        yield Notes("Warnings", tuple(faults))
    yield Notes(
        "More",
        (
            "ctxdoc simulate LOG --strategy shrink_images --strategy drop_images says whether to shrink "
            "or to drop them",
        ),
    )


def _uncounted(unknown: int, documents: int) -> Iterator[Part]:
    lines = []
    if unknown:
        stand = "stands" if unknown == 1 else "stand"
        lines.append(f"{counted(unknown, 'image')} {stand} in the log as a reference only")
    if documents:
        lines.append(
            f"{counted(documents, 'document')}: pages are counted as text and as images by the API"
        )
    if lines:
        yield Notes("Not counted, because", tuple(lines))


def _log_row(place: int, each: SessionImage, several: bool) -> Iterator[str]:
    picture = each.picture
    yield str(place)
    yield f"#{each.request}"
    yield f"{picture.width:,}×{picture.height:,}" if picture else "-"
    if picture:
        width, height = resized(picture.width, picture.height, each.tier)
        yield "-" if (width, height) == (picture.width, picture.height) else f"{width:,}×{height:,}"
    else:
        yield "-"
    yield f"{picture.size:,}" if picture else "-"
    yield tokens_text(each.tokens)
    yield str(each.times)
    yield money_text(each.cost)
    yield f"#{each.same_as}" if each.same_as else "-"
    if several:
        yield each.source
    yield each.json_path


def _sent_json(each: SessionImage) -> Json:
    picture = each.picture
    width, height = resized(picture.width, picture.height, each.tier) if picture else (None, None)
    return {
        "source": each.source,
        "width": picture.width if picture else None,
        "height": picture.height if picture else None,
        "model": each.model,
        "tier": each.tier,
        "sent_width": width,
        "sent_height": height,
        "tokens": each.tokens,
        "tokens_old_rule": old_tokens(picture.width, picture.height) if picture else None,
        "kind": picture.kind if picture else None,
        "bytes": picture.size if picture else None,
        "request": each.request,
        "json_path": each.json_path,
        "times_sent": each.times,
        "lifetime_tokens": None if each.tokens is None else each.tokens * each.times,
        "lifetime_cost": money_json(each.cost),
        "same_as": each.same_as,
        "suggestions": [
            {"width": size.width, "height": size.height, "tokens": size.tokens}
            for size in (smaller_sizes(picture.width, picture.height, each.tier) if picture else ())
        ],
        "warnings": list(faults_of(picture)) if picture else [],
    }
