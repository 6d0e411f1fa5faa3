"""Workflow commands of GitHub Actions: an annotation for each finding (workflow-commands page, 2026-11)."""

from __future__ import annotations

from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import Annotation, Report

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def _write(report: Report, style: Style) -> str:
    del style
    checks = report.checks
    lines = [_command(annotation) for annotation in checks.annotations]
    lines.append(f"ctxdoc gate: {checks.verdict}: {_line(checks.summary)}")
    return "\n".join(lines) + "\n"


def _command(annotation: Annotation) -> str:
    title = f"ctxdoc {annotation.rule.id}: {annotation.rule.title}"
    properties = {"title": title}
    if annotation.file:
        properties = {"file": annotation.file, "line": str(annotation.line), **properties}
    named = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{COMMANDS[annotation.level]} {named}::{_data(annotation.message)}"


def _data(text: str) -> str:
    return harmless(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _line(text: str) -> str:
    """A text that cannot begin a command of its own."""
    return harmless(text).replace("\n", " ")


OUTPUT = Output(id="github", title="annotations of GitHub Actions", write=_write)
