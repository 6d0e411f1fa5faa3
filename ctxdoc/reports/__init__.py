"""Results as reports: what is said, before any decision on how it looks."""

from __future__ import annotations

from ctxdoc.reports.base import (
    Chart,
    Fields,
    Headline,
    Notes,
    Part,
    Records,
    Report,
    Row,
    Snippet,
    Table,
)

__all__ = [
    "Chart",
    "Fields",
    "Headline",
    "Notes",
    "Part",
    "Records",
    "Report",
    "Row",
    "Snippet",
    "Table",
]
