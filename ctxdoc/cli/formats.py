"""`ctxdoc formats`: the log formats that can be read."""

from __future__ import annotations

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.options import FormatOption, NoColorOption, OutputOption
from ctxdoc.cli.writing import write_report
from ctxdoc.outputs import OUTPUTS
from ctxdoc.outputs.report import Notes, Report, Table
from ctxdoc.reading.formats import FORMATS
from ctxdoc.request.codec import Json

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def formats(
    form: FormatOption = "text", output: OutputOption = "", no_color: NoColorOption = False
) -> None:
    """List the log formats, what each carries, and where such a log stands.

    \b
    Examples:
      ctxdoc formats
      ctxdoc explain claude_code
    """
    OUTPUTS[form]
    write_report(_report(), form, output, no_color=no_color)


def _report() -> Report:
    rows = tuple((f.id, f.title, ", ".join(sorted(f.traits)), f.example) for f in FORMATS)
    table = Table("Log formats", ("id", "what it is", "carries", "example"), rows)
    note = "A file's format is found by its content; .gz, .zst and zip are read directly."
    data: list[Json] = []
    for form in FORMATS:
        traits: list[Json] = [str(trait) for trait in sorted(form.traits)]
        data.append({"id": form.id, "title": form.title, "traits": traits, "example": form.example})
    return Report(
        make_parts=lambda: (table, Notes("", (note,))),
        make_data=lambda: {"schema": "ctxdoc/formats/1", "formats": data},
    )
