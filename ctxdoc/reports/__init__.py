"""Results as reports: what is said, before any decision on how it looks."""

from __future__ import annotations

from ctxdoc.reports.base import (
    Annotation,
    Chart,
    Checks,
    Curves,
    Fields,
    Headline,
    Heat,
    Notes,
    Part,
    Picture,
    Records,
    Report,
    Row,
    Snippet,
    Table,
    counted,
)

__all__ = [
    "Annotation",
    "Chart",
    "Checks",
    "Curves",
    "Fields",
    "Headline",
    "Heat",
    "Notes",
    "Part",
    "Picture",
    "Records",
    "Report",
    "Row",
    "Snippet",
    "Table",
    "counted",
]
