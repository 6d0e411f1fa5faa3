"""Results as reports: what is said, before any decision on how it looks."""

from __future__ import annotations

from ctxdoc.reports.base import Fields, Headline, Notes, Part, Report, Row, Snippet, Table

__all__ = ["Fields", "Headline", "Notes", "Part", "Report", "Row", "Snippet", "Table"]
