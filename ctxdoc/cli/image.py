"""`ctxdoc image`: what images cost by their size, in files and in logs."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote_to_bytes

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.options import (
    DebugOption,
    FormatOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    StrictOption,
    check_model,
    check_plot,
    skipped_lines,
    warn,
    with_model,
    write_bytes,
    write_report,
)
from ctxdoc.errors import InputError
from ctxdoc.images import PDF_PAGES, Picture, read_picture
from ctxdoc.load import read_log
from ctxdoc.made_up import MODEL
from ctxdoc.outputs import OUTPUTS
from ctxdoc.pictures import LARGE_WINDOW, faults_of, faults_of_many, images_of, request_faults
from ctxdoc.placements import PLACEMENTS
from ctxdoc.pricing import Tariff, find_rates
from ctxdoc.providers import RULES
from ctxdoc.recorded import recorded_session
from ctxdoc.reports import Report
from ctxdoc.reports.image import Asked, Bill, curve_of, image_report, log_report
from ctxdoc.simulate import Simulation, parse_specs

SIZE = re.compile(r"^(\d{1,7})[x×X*](\d{1,7})$")
DATA_URL = re.compile(r"^data:(image/[\w.+-]+|application/pdf)?[^,]*,", re.ASCII)
MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"BM", b"II*\0", b"MM\0*")
"""Beginnings of files that are images or PDF, be it of kinds that the API does not take."""
EXTENSIONS = {"PNG": {".png"}, "JPEG": {".jpg", ".jpeg"}, "GIF": {".gif"}, "WEBP": {".webp"}}
PICTURE_NAMES = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".bmp", ".tif", ".tiff"}
)
MOST_BYTES = 100_000_000
"""Of a file: far more than any request takes."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def image(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="Sizes (1920x1080), image and PDF files, data URLs; or logs.",
            show_default=False,
        ),
    ],
    turns: Annotated[
        int, typer.Option("--turns", metavar="N", help="Turns that send it again.", min=1)
    ] = 10,
    plot: Annotated[
        str,
        typer.Option("--plot", metavar="FILE", help="Draw tokens over size: a .png or .svg file."),
    ] = "",
    form: FormatOption = "text",
    output: OutputOption = "",
    model: Annotated[
        str, typer.Option("--model", help="The model that tokens and prices are for.")
    ] = "",
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Count the tokens of images: ⌈w/28⌉·⌈h/28⌉ after the API's own resizing, with what they cost once and
    over the turns that send them again, and which smaller sizes save something.

    Headers are read, nothing is decoded. Of a log every image is listed with its life.

    \b
    Examples:
      ctxdoc image 1920x1080
      ctxdoc image screenshot.png --model claude-opus-5-5 --turns 40
      ctxdoc image agent.jsonl
      ctxdoc image 1280x800 --plot steps.png
    """
    del debug
    OUTPUTS[form]
    check_model(model)
    check_plot(plot)
    logs = [each for each in what if not _is_picture(each)]
    if logs and len(logs) < len(what):
        raise InputError("logs and images at once", "ask about one kind at a time")
    if logs:
        if plot:
            raise InputError("--plot draws the steps of a size", "name a size or a file, not a log")
        report = _of_log(logs, model, strict=strict, quiet=quiet)
    else:
        report = _of_images(what, model or MODEL, turns, plot)
    write_report(report, form, output, no_color=no_color)


def _is_picture(what: str) -> bool:
    """Whether it is a size, a data URL, or a file that is or claims to be an image."""
    if SIZE.match(what) or what.startswith("data:"):
        return True
    path = Path(what)
    if what == "-" or not path.is_file():
        return path.suffix.lower() in PICTURE_NAMES
    try:
        with path.open("rb") as stream:
            head = stream.read(16)
    except OSError:
        return path.suffix.lower() in PICTURE_NAMES
    return head.startswith(MAGIC) or path.suffix.lower() in PICTURE_NAMES


def _of_images(what: list[str], model: str, turns: int, plot: str) -> Report:
    asked = [_asked(each) for each in what]
    rule = RULES.find_model(model)
    tariff = Tariff(model=model, day=datetime.now(UTC).date())
    bill = Bill(model=rule.id, rule=rule, rates=find_rates(tariff, 0), turns=turns)
    sized = [each for each in asked if each.pages is None]
    if plot:
        if not sized:
            raise InputError("there is nothing to draw", "a PDF has no steps")
        from ctxdoc.outputs.plot import write_picture

        path = Path(plot)
        drawn = write_picture(curve_of(sized, bill), path.suffix.lower().removeprefix("."))
        write_bytes(path, drawn, "--plot")
    pictures = [each.picture or Picture(each.width, each.height, "", 0) for each in sized]
    faults = faults_of_many(pictures, rule.window >= LARGE_WINDOW) if len(what) > 1 else ()
    return image_report(asked, bill, tuple(faults))


def _asked(what: str) -> Asked:
    """A size, a data URL or a file.

    Raises InputError for what is none, or cannot be read.
    """
    size = SIZE.match(what)
    if size:
        picture = Picture(int(size[1]), int(size[2]), "", 0)
        if not picture.width or not picture.height:
            raise InputError(f"{what}: an image has at least one pixel", "write 1920x1080")
        return Asked(
            source=what, width=picture.width, height=picture.height, notes=tuple(faults_of(picture))
        )
    data, name = _data(what)
    try:
        if data.startswith(b"%PDF"):
            return _pdf(data, name)
        found = read_picture(data)
    except InputError as error:
        raise InputError(f"{name}: {error.message}", error.hint) from error
    return Asked(
        source=name,
        width=found.width,
        height=found.height,
        picture=found,
        notes=tuple(_notes(found, name)),
    )


def _data(what: str) -> tuple[bytes, str]:
    """The bytes of a file or a data URL, and how to name it."""
    if what.startswith("data:"):
        match = DATA_URL.match(what)
        if match is None:
            raise InputError("the data URL holds no image", "write data:image/png;base64,…")
        rest = what[match.end() :]
        name = f"{match[0][:40]}…"
        if ";base64" not in match[0]:
            return unquote_to_bytes(rest), name
        try:
            return b64decode(rest, validate=False), name
        except (Base64Error, ValueError) as error:
            raise InputError(f"{name}: no base64") from error
    path = Path(what)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{what}: over {MOST_BYTES:,} bytes, more than any request takes")
        return path.read_bytes(), what
    except OSError as error:
        raise InputError(
            f"cannot read {what}: {error.strerror or error}", "check the path"
        ) from error


def _notes(found: Picture, name: str) -> Iterator[str]:
    yield from faults_of(found)
    suffix = Path(name).suffix.lower()
    if suffix in PICTURE_NAMES and suffix not in EXTENSIONS[found.kind]:
        yield f"named {suffix}, but it is a {found.kind}"
    if found.moves:
        yield "it moves: counted as one image of the size of the whole, the first frame"
    if found.turned:
        yield (
            "its EXIF data turn it by a quarter: counted as it is stored; the count is the same either way"
        )


def _pdf(data: bytes, name: str) -> Asked:
    import logging
    from io import BytesIO

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        pages = len(PdfReader(BytesIO(data)).pages)
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise InputError("no PDF that can be read") from error
    most = PDF_PAGES["large window"]
    notes = (f"more than the {most} pages that the API takes",) if pages > most else ()
    return Asked(source=name, pages=pages, notes=notes)


def _of_log(logs: list[str], model: str, *, strict: bool, quiet: bool) -> Report:
    log = with_model(read_log(logs, strict=strict, condense=True), model)
    for line in skipped_lines(log):
        warn(line, quiet=quiet)
    session = recorded_session(log)
    simulated = Simulation(session).usages(parse_specs("keep"), PLACEMENTS["recorded"])
    usages = [call.reported or usage for call, usage in zip(session.calls, simulated, strict=True)]
    sent = images_of(session, usages)
    source = logs[0] if len(logs) == 1 else f"{len(logs)} logs"
    return log_report(sent, source, len(session.calls), tuple(request_faults(session)))
