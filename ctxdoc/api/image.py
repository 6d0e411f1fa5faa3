"""`ctxdoc.image`: what images cost by their size, in files and in logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ctxdoc.api.outcome import Outcome, drawn, noting, skipped_lines
from ctxdoc.api.read import Source, asked_counter, check_model, names_of, read
from ctxdoc.api.rows import Row, rows_of
from ctxdoc.errors import InputError
from ctxdoc.images.ask import AskedImage, asked_of, faults_of_many
from ctxdoc.images.file import Picture
from ctxdoc.images.signature import is_image
from ctxdoc.outputs.report import Curves, Report
from ctxdoc.pricing.rates import find_rates
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.providers import find_model
from ctxdoc.reports.bill import Bill
from ctxdoc.reports.image import image_report
from ctxdoc.reports.image_curve import curve_of
from ctxdoc.reports.image_log import log_report
from ctxdoc.request.log import Log
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.from_numbers import MODEL
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.images import SessionImage, images_of, request_faults
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter

TURNS = 10
"""Turns that send an image, where nothing else is said."""


class ImageTotals(Struct, frozen=True, kw_only=True):
    """Images in one line."""

    images: int
    """A PDF is none."""
    tokens: int
    """Of those whose size is known, each sent once."""
    cost: Decimal | None
    """USD: of sizes and files sent once in full, of a log over the life of its images; None where one has no
    price."""


class ImageOutcome(Outcome, frozen=True, kw_only=True, dict=True):
    """Tokens and money of each image."""

    view: Callable[[], Report]
    """Makes the report; it holds no text of requests."""
    curve: Callable[[], Curves] | None = None
    """Tokens over the size, where there is a size that was asked for."""
    why_not_drawn: str = "a PDF has no steps"

    @property
    def totals(self) -> ImageTotals:
        """How many there are, and what they cost."""
        found: Any = self.to_dict()
        known = [each["tokens"] for each in found["images"] if each.get("tokens") is not None]
        # Pages of a PDF are a range of tokens, which no sum holds.
        sized = [each for each in found["images"] if "tokens" in each]
        costs = [each.get("lifetime_cost", each.get("cost")) for each in sized]
        whole = None if None in costs else sum(map(Decimal, costs), Decimal(0))
        return ImageTotals(images=len(sized), tokens=sum(known), cost=whole)

    @cached_property
    def rows(self) -> list[Row]:
        """The images in the order in which they were given or sent."""
        found: Any = self.to_dict()
        return rows_of(found["images"])

    @cached_property
    def findings(self) -> list[Row]:
        """What the API would refuse of them together; of one image its row says so."""
        found: Any = self.to_dict()
        return [{"warning": text} for text in found["warnings"]]

    def report(self, *, excerpts: bool = True) -> Report:
        """What all outputs write."""
        del excerpts
        return self.view()

    def plot(self, kind: str = "png") -> bytes:
        """Tokens over the size of the first image as a picture: png or svg.

        Raises InputError for a log, and where there are PDFs only.
        """
        if self.curve is None:
            raise InputError("there is nothing to draw", self.why_not_drawn)
        return drawn(self.curve(), kind)


def image(
    *what: Source,
    turns: int | None = None,
    model: str = "",
    strict: bool = False,
    count_tokens: bool | TokenCounter = False,
) -> ImageOutcome:
    """What images cost: tokens after the API's own resizing, money once and in the turns that send them again.

    `what` are sizes in pixels ("1920x1080"), image and PDF files and data URLs, or logs, of which every image
    is listed with its life. `turns`, 10 without it, and `count_tokens` go with sizes and files.

    Raises InputError for what cannot be read, and for both kinds at once; NoRequestError for a log without a
    usable request.

        found = ctxdoc.image("1920x1080", "screenshot.png", turns=40)
        found.totals.tokens, found.rows[0]["write_cost"]
    """
    check_model(model)
    if not what:
        raise InputError("there is no image", "write 1920x1080, or name a file or a log")
    names = [os.fspath(each) for each in what if not isinstance(each, Log)]
    images = [name for name in names if is_image(name)]
    if len(images) == len(what):
        return _of_images(images, model or MODEL, turns or TURNS, count_tokens)
    if images:
        raise InputError("logs and images at once", "ask about one kind at a time")
    _check_log_options(turns, count_tokens)
    return _of_log(what, model, strict=strict)


def _check_log_options(turns: int | None, count_tokens: bool | TokenCounter) -> None:
    """Raises InputError for what is asked of a size or a file only."""
    if turns is not None:
        raise InputError("--turns goes with sizes and files", "of a log every sending is counted")
    if count_tokens is not False:
        raise InputError(
            "--count-tokens goes with sizes and files", "of a log: ctxdoc replay LOG --count-tokens"
        )


def _of_images(
    names: Sequence[str], model: str, turns: int, count_tokens: bool | TokenCounter
) -> ImageOutcome:
    rule = find_model(model)
    asked = [asked_of(each, rule) for each in names]
    if count_tokens is not False:
        asked = _counted(asked, names, model, count_tokens)
    # What is asked about was not sent yet: prices are today's.
    tariff = Tariff(model=model, day=datetime.now(UTC).date())
    bill = Bill(model=rule.id, rule=rule, rates=find_rates(tariff, 0), turns=turns)
    sized = [each for each in asked if each.pages is None]
    pictures = [each.picture or Picture(each.width, each.height, "", 0) for each in sized]
    # What one image breaks stands with it; these are rules on what a request holds together.
    faults = tuple(faults_of_many(pictures, rule.has_large_window)) if len(names) > 1 else ()
    return ImageOutcome(
        view=lambda: image_report(asked, bill, faults),
        curve=(lambda: curve_of(sized, bill)) if sized else None,
    )


def _counted(
    asked: Sequence[AskedImage],
    names: Sequence[str],
    model: str,
    count_tokens: Literal[True] | TokenCounter,
) -> list[AskedImage]:
    from ctxdoc.live.count_images import with_image_counts

    with asked_counter(count_tokens) as counter:
        return list(with_image_counts(asked, names, model, counter))


def _of_log(logs: Sequence[Source], model: str, *, strict: bool) -> ImageOutcome:
    log = read(*logs, model=model, strict=strict, condense=True)
    warnings = skipped_lines(log)
    with noting(warnings):
        session = recorded_session(log)
    sent, documents = _images_of(session), _count_documents(session)
    read_from = names_of(logs)
    source = read_from[0] if len(read_from) == 1 else f"{len(read_from)} logs"
    if any(call.reported is None for call in session.calls):
        source += " (some costs are simulated: the log has no counters)"
    faults, count = tuple(request_faults(session)), len(session.calls)
    return ImageOutcome(
        view=lambda: log_report(sent, source, count, faults, documents),
        why_not_drawn="name a size or a file, not a log",
        warnings=warnings,
    )


def _images_of(session: Session) -> list[SessionImage]:
    """The images of a log, priced by what was reported, and where nothing was by what the cache would do."""
    simulated = Simulation(session).usages(parse_specs("keep"), PLACEMENTS["recorded"])
    usages = [call.reported or usage for call, usage in zip(session.calls, simulated, strict=True)]
    return images_of(session, usages)


def _count_documents(session: Session) -> int:
    return sum(
        segment.kind == "document" for message in session.messages for segment in message.segments
    )
