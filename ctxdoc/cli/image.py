"""`ctxdoc image`: what images cost by their size, in files and in logs."""

from __future__ import annotations

from typing import Annotated

import typer

from ctxdoc.api import image as api
from ctxdoc.cli.command import Command
from ctxdoc.cli.counting import counting, tell_images
from ctxdoc.cli.options import (
    DebugOption,
    FormatOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    StrictOption,
)
from ctxdoc.cli.writing import check_plot, refuse_inputs, warn_all, write_plot, write_report
from ctxdoc.errors import InputError
from ctxdoc.images.signature import is_image
from ctxdoc.outputs import OUTPUTS

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
        typer.Option("--plot", metavar="FILE", help="Draw tokens over size: a {pictures} file."),
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
    check_plot(plot)
    refuse_inputs(what, {"--plot": plot, "--output": output})
    # Before a log is read: there is no size in it whose steps could be drawn.
    if plot and not any(map(is_image, what)):
        raise InputError("--plot draws the steps of a size", "name a size or a file, not a log")
    # Of logs the function itself says that they are not counted, key or no key.
    with counting(count_tokens and any(map(is_image, what)), tell_images) as counter:
        found = api.image(
            *what, turns=turns, model=model, strict=strict, count_tokens=counter or count_tokens
        )
    warn_all(found.warnings, quiet=quiet)
    write_plot(plot, found.plot)
    write_report(found.report(), form, output, no_color=no_color)
