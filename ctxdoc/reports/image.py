"""What images cost: by their size, over the turns that send them again, and how to pay less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxdoc.images.ask import AskedImage
from ctxdoc.images.size import (
    PATCH,
    PDF_TEXT,
    TIERS,
    Smaller,
    image_tokens,
    next_step,
    old_tokens,
    resized,
    smaller_sizes,
)
from ctxdoc.outputs.numbers import counted, money_text, tokens_text
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Report
from ctxdoc.outputs.report import Row as Line
from ctxdoc.reports.bill import Bill
from ctxdoc.reports.image_curve import curve_of
from ctxdoc.reports.json.image import SCHEMA, asked_json


def image_report(asked: Sequence[AskedImage], bill: Bill, faults: Sequence[str] = ()) -> Report:
    """The report on sizes and files."""
    return Report(
        make_parts=lambda: _parts(asked, bill, faults),
        make_data=lambda: {
            "schema": SCHEMA,
            "images": [asked_json(each, bill) for each in asked],
            "warnings": list(faults),
        },
    )


def _parts(asked: Sequence[AskedImage], bill: Bill, faults: Sequence[str]) -> Iterator[Part]:
    sized = [each for each in asked if each.pages is None]
    if sized:
        yield _headline(sized, bill)
    for each in asked:
        yield _image(each, bill) if each.pages is None else _pdf(each, bill)
    if faults:
        yield Notes("Warnings", tuple(faults))
    if sized:
        yield curve_of(sized, bill)


def _headline(sized: Sequence[AskedImage], bill: Bill) -> Headline:
    tokens = sum(map(bill.tokens, sized))
    first = bill.cost(tokens, bill.rates.input if bill.rates else None)
    text = f"{counted(len(sized), 'image')}: {tokens_text(tokens)} tokens"
    text += f", {money_text(first)} to send" if first is not None else ""
    edge, budget = TIERS[bill.rule.image_tier]
    under = (
        f"{bill.model}, {bill.rule.image_tier} resolution: at most {edge:,} px a side and {budget:,} "
        f"tokens; ⌈w/{PATCH}⌉·⌈h/{PATCH}⌉ tokens"
    )
    return Headline("IMAGES", "plain", text, under)


def _image(each: AskedImage, bill: Bill) -> Fields:
    tokens, picture = bill.tokens(each), each.picture
    kind = f" {picture.kind}, {picture.size:,} bytes" if picture else ""
    lines = [
        Line("Image", f"{each.source}{kind}", strong=True),
        Line("Size", f"{each.width:,} × {each.height:,}; {_sent(each, bill)}"),
        Line("Tokens", _tokens(each, bill)),
    ]
    if each.counted is not None:
        lines.append(Line("Counted", f"{each.counted:,} by the API"))
    lines.append(Line("Money", _money(tokens, bill)))
    lines += [Line("", note) for note in (*each.warnings, *each.notes)]
    lines += [Line("" if n else "Smaller", text) for n, text in enumerate(_smaller(each, bill))]
    return Fields(tuple(lines))


def _sent(each: AskedImage, bill: Bill) -> str:
    width, height = resized(each.width, each.height, bill.rule.image_tier)
    if (width, height) == (each.width, each.height):
        return "sent as it is"
    return f"the API makes it {width:,} × {height:,}"


def _tokens(each: AskedImage, bill: Bill) -> str:
    """The count with its two factors, and what other rules would say."""
    tier, tokens = bill.rule.image_tier, bill.tokens(each)
    width, height = resized(each.width, each.height, tier)
    columns, rows = -(-width // PATCH), -(-height // PATCH)
    other = "high" if tier == "standard" else "standard"
    return (
        f"{columns} · {rows} = {tokens:,} ({other} resolution: "
        f"{image_tokens(each.width, each.height, other):,}; the old rule w·h/750 says "
        f"{old_tokens(each.width, each.height):,})"
    )


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
    tier, tokens = bill.rule.image_tier, bill.tokens(each)
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


def _pdf(each: AskedImage, bill: Bill) -> Fields:
    pages = each.pages or 0
    budget = TIERS[bill.rule.image_tier][1]
    low, high = PDF_TEXT
    # A page is billed twice: as its text, and as an image of it.
    tokens = (
        f"{counted(pages, 'page')}: about {pages * low:,} to {pages * high:,} of text, and "
        f"each page as an image of at most {budget:,}: up to {pages * (high + budget):,} "
        "(estimated; pdf-support page, 2026-08-22)"
    )
    notes = (Line("", note) for note in (*each.warnings, *each.notes))
    return Fields((Line("PDF", each.source, strong=True), Line("Tokens", tokens), *notes))
