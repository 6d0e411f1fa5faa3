"""`ctxdoc image`: what images cost by their size, in files and in logs."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

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
    refuse_inputs,
    skipped_lines,
    token_counter,
    warn,
    with_model,
    write_bytes,
    write_report,
)
from ctxdoc.errors import InputError
from ctxdoc.images.ask import PICTURE_NAMES, SIZE, AskedImage, asked_of, faults_of_many, image_block
from ctxdoc.images.file import Picture
from ctxdoc.outputs import OUTPUTS
from ctxdoc.outputs.report import Report
from ctxdoc.pricing.rates import find_rates
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.providers import find_model
from ctxdoc.reading.load import read_log
from ctxdoc.reports.bill import Bill
from ctxdoc.reports.image import image_report
from ctxdoc.reports.image_curve import curve_of
from ctxdoc.reports.image_log import log_report
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.from_numbers import MODEL
from ctxdoc.simulation.images import images_of, request_faults
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs

TURNS = 10
MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"BM", b"II*\0", b"MM\0*")
"""Beginnings of files that are images or PDF, be it of kinds that the API does not take."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def image(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="Sizes (1920x1080), image and PDF files, data URLs; or logs. '-' is standard input.",
            show_default=False,
        ),
    ],
    turns: Annotated[
        int | None,
        typer.Option(
            "--turns",
            metavar="N",
            help="Turns that send a size or a file; 10 without it.",
            min=1,
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        str,
        typer.Option("--plot", metavar="FILE", help="Draw tokens over size: a .png or .svg file."),
    ] = "",
    form: FormatOption = "text",
    output: OutputOption = "",
    model: Annotated[
        str, typer.Option("--model", help="The model that tokens and prices are for.")
    ] = "",
    count_tokens: Annotated[
        bool,
        typer.Option(
            "--count-tokens", help="Let the API count too: free, needs a key, kept on disk."
        ),
    ] = False,
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
    refuse_inputs(what, {"--plot": plot, "--output": output})
    logs = [each for each in what if not _is_picture(each)]
    if logs and len(logs) < len(what):
        raise InputError("logs and images at once", "ask about one kind at a time")
    if logs:
        if turns is not None:
            raise InputError(
                "--turns goes with sizes and files", "of a log every sending is counted"
            )
        if plot:
            raise InputError("--plot draws the steps of a size", "name a size or a file, not a log")
        if count_tokens:
            raise InputError(
                "--count-tokens goes with sizes and files",
                "of a log: ctxdoc replay LOG --count-tokens",
            )
        report = _of_log(logs, model, strict=strict, quiet=quiet)
    else:
        report = _of_images(what, model or MODEL, turns or TURNS, plot, count=count_tokens)
    write_report(report, form, output, no_color=no_color)


def _is_picture(what: str) -> bool:
    """Whether it is a size, a data URL, or a file that is or claims to be an image."""
    if SIZE.match(what) or what.startswith("data:"):
        return True
    if what == "-":
        # The beginning stays to be read by whoever reads it all.
        head = sys.stdin.buffer.peek(16) if hasattr(sys.stdin.buffer, "peek") else b""
        return head.startswith(MAGIC)
    path = Path(what)
    if not path.is_file():
        return path.suffix.lower() in PICTURE_NAMES
    try:
        with path.open("rb") as stream:
            head = stream.read(16)
    except OSError:
        return path.suffix.lower() in PICTURE_NAMES
    return head.startswith(MAGIC) or path.suffix.lower() in PICTURE_NAMES


def _of_images(what: list[str], model: str, turns: int, plot: str, *, count: bool) -> Report:
    rule = find_model(model)
    asked = [asked_of(each, rule) for each in what]
    if count:
        asked = _counted(asked, what, model)
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
    faults = faults_of_many(pictures, rule.has_large_window) if len(what) > 1 else ()
    return image_report(asked, bill, tuple(faults))


def _counted(asked: list[AskedImage], what: list[str], model: str) -> list[AskedImage]:
    """The images with what the API counts for them: a message with the image less one without."""
    text = {"type": "text", "text": "?"}
    found = []
    with token_counter() as counter:
        bare = counter.count({"model": model, "messages": [{"role": "user", "content": [text]}]})
        for each, name in zip(asked, what, strict=True):
            block = image_block(each, name)
            whole = None
            if block is not None and bare is not None:
                content = [block, text]
                whole = counter.count(
                    {"model": model, "messages": [{"role": "user", "content": content}]}
                )
            own = None if whole is None or bare is None else whole - bare
            found.append(replace(each, counted=own))
        if counter.stopped:
            warn(f"--count-tokens stopped: {counter.stopped}", quiet=False)
    return found


def _of_log(logs: list[str], model: str, *, strict: bool, quiet: bool) -> Report:
    log = with_model(read_log(logs, strict=strict, condense=True), model)
    for line in skipped_lines(log):
        warn(line, quiet=quiet)
    session = recorded_session(log)
    simulated = Simulation(session).usages(parse_specs("keep"), PLACEMENTS["recorded"])
    usages = [call.reported or usage for call, usage in zip(session.calls, simulated, strict=True)]
    sent = images_of(session, usages)
    source = logs[0] if len(logs) == 1 else f"{len(logs)} logs"
    if any(call.reported is None for call in session.calls):
        source += " (some costs are simulated: the log has no counters)"
    documents = sum(
        segment.kind == "document" for message in session.messages for segment in message.segments
    )
    faults = tuple(request_faults(session))
    return log_report(sent, source, len(session.calls), faults, documents)
