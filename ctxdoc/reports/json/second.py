"""The second schema of every document: shares, ratios and percentages are numbers, and not strings."""

from __future__ import annotations

import re

from msgspec import Raw
from msgspec.structs import replace

from ctxdoc.outputs.report import Report
from ctxdoc.request.codec import Json

ENDINGS = ("_percent", "_share", "_ratio")
OTHERS = frozenset({"r2", "max_unseen", "share", "ratio"})
"""Members that are such numbers and do not end so."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def second_of(report: Report) -> Report:
    """The same report with a document of the second schema. Money stays a string: it is exact."""
    return replace(report, make_data=lambda: _document(report.data))


def _document(data: dict[str, Json]) -> dict[str, Json]:
    found = {name: _value(name, value) for name, value in data.items()}
    schema = data.get("schema")
    if isinstance(schema, str):
        found["schema"] = schema.removesuffix("/1") + "/2"
    return found


def _value(name: str, value: Json) -> Json:
    match value:
        case dict():
            return {key: _value(key, member) for key, member in value.items()}
        case list():
            return [_value(name, item) for item in value]
        case str() if _is_number(name) and _NUMBER.fullmatch(value):
            return Raw(value.encode())
        case _:
            return value


def _is_number(name: str) -> bool:
    return name.endswith(ENDINGS) or name in OTHERS
