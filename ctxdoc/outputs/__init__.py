"""The values of a report and how they are written, one way a file; knows no report of a command."""

from __future__ import annotations

from ctxdoc.outputs.base import Output, Style
from ctxdoc.registry import Registry

OUTPUTS: Registry[Output] = Registry(
    "ctxdoc.outputs",
    "OUTPUT",
    ("text", "json", "markdown", "csv", "html", "github", "sarif", "junit"),
    "format",
)

__all__ = ["OUTPUTS", "Output", "Style"]
