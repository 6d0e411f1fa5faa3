"""The images of a log: how often each was sent, and what that cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from ctxdoc.images.size import resized
from ctxdoc.outputs.numbers import counted, money_text, tokens_text
from ctxdoc.outputs.report import Headline, Notes, Part, Report, Table
from ctxdoc.reports.json.image import SCHEMA, sent_json
from ctxdoc.simulation.images import SessionImage

MOST_LISTED = 60


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
            "images": [sent_json(each) for each in sent],
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
