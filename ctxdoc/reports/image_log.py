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
        make_parts=lambda: _log_parts(sent, source, requests, faults, documents),
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
    yield Headline("IMAGES", "plain", _sum_text(sent), under)
    yield _table(sent)
    left = len(sent) - MOST_LISTED
    if left > 0:
        yield Notes("", (f"{left:,} more are in --format json",))
    yield from _uncounted(sum(each.tokens is None for each in sent), documents)
    if faults:
        yield Notes("Warnings", tuple(faults))
    yield Notes("More", (MORE,))


MORE = (
    "ctxdoc simulate LOG --strategy shrink_images --strategy drop_images says whether to shrink or to "
    "drop them"
)


def _sum_text(sent: Sequence[SessionImage]) -> str:
    """How many images, their tokens and their cost over all requests that send them."""
    known = [each.tokens * each.times for each in sent if each.tokens is not None]
    costs = [each.cost for each in sent if each.cost is not None]
    tokens = f", sent to {tokens_text(sum(known))} tokens in all" if known else "; no size is known"
    # A sum that lacks some would read as that of all.
    whole = len(costs) == len(sent)
    price = f", {money_text(sum(costs, Decimal(0)))} over their life" if whole else ""
    return f"{counted(len(sent), 'image')}{tokens}{price}"


def _table(sent: Sequence[SessionImage]) -> Table:
    several = len({each.source for each in sent}) > 1
    order = sorted(range(len(sent)), key=lambda i: (-(sent[i].cost or Decimal(0)), i))
    return Table(
        title="",
        columns=(*COLUMNS, *(["log"] if several else []), "JSON path"),
        rows=tuple(
            tuple(_log_row(index + 1, sent[index], several)) for index in order[:MOST_LISTED]
        ),
        optional=(4, 3, 8),
    )


COLUMNS = ("#", "request", "size", "as sent", "bytes", "tokens", "times", "cost", "bytes of")


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
