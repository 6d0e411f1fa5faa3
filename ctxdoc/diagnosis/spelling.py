"""Two values that are the same in another spelling: keys in another order, numbers, blanks, Unicode forms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import TypeGuard

import msgspec
from msgspec import Raw, Struct

from ctxdoc.diagnosis.case import Case, Confidence
from ctxdoc.diagnosis.history_edits import asks_anew
from ctxdoc.diagnosis.reordered import Order, find_order
from ctxdoc.diagnosis.text_values import changed_span
from ctxdoc.prompt.diff import Change, Difference
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Section


class Reordered(Struct, frozen=True):
    """A value that holds the same in another order."""

    difference: Difference
    order: Order


def find_key_order(case: Case) -> Reordered | None:
    """The first place whose two sides are equal once the keys, or the names in a text, are sorted."""
    for change in case.changes:
        one, two = change.before, change.after
        if one is None or two is None or one.digest == two.digest:
            continue
        if codec.encode_sorted(one.value) == codec.encode_sorted(two.value):
            return Reordered(change.difference, Order.MEMBERS)
        order = _text_order(case, change)
        if order is not None:
            return Reordered(change.difference, order)
    return None


def _text_order(case: Case, change: Change) -> Order | None:
    before, after = change.difference.before, change.difference.after
    if not (isinstance(before, str) and isinstance(after, str)):
        return None
    if change.difference.section is Section.MESSAGES and asks_anew(case, change):
        return None
    spoken = change.difference.section in (Section.TOOLS, Section.SYSTEM, Section.MESSAGES)
    return find_order(before, after) if spoken else None


def spelling_proof(case: Case) -> Confidence:
    """How sure a difference of spelling is: where a recorder parsed the bodies it may be the recorder's."""
    exact = case.before.request.is_exact and case.after.request.is_exact
    return case.proof if exact else Confidence.POSSIBLE


def find_leaf(case: Case, same: Callable[[Json, Json], bool]) -> Difference | None:
    """The first differing value for which the comparison says that both are the same."""
    for change in case.changes:
        difference = change.difference
        if (
            difference.before is None
            or difference.after is None
            or difference.section is Section.SETTINGS
        ):
            continue
        if difference.section is not Section.MODEL and same(difference.before, difference.after):
            return difference
    return None


def same_json_value(before: Json, after: Json) -> bool:
    """Equal numbers in two spellings, or texts that hold equal JSON."""
    one, two = _number(before), _number(after)
    if one is not None and two is not None:
        return one == two
    # Only text that begins as JSON does: a number alone or a word is prose.
    return _begins_as_json(before) and _begins_as_json(after) and _hold_one_value(before, after)


def _begins_as_json(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"')


def _hold_one_value(before: str, after: str) -> bool:
    try:
        return bool(msgspec.json.decode(before.encode()) == msgspec.json.decode(after.encode()))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False


def _number(value: Json) -> Decimal | None:
    if isinstance(value, Raw):
        return Decimal(bytes(value).decode())
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


def same_normalized(before: Json, after: Json) -> bool:
    """Equal but for white space at line ends and text ends, line ends, and Unicode form."""
    if not (isinstance(before, str) and isinstance(after, str)):
        return False
    if before == after:
        return False
    start, end_before, end_after = changed_span(before, after)
    one, two = before[start:end_before], after[start:end_after]
    plain = one.isascii() and two.isascii()
    if plain and "".join(one.split()) != "".join(two.split()):
        # In ASCII only white space is another spelling.
        return False
    return normalized(before) == normalized(after)


@lru_cache(maxsize=64)
def normalized(text: str) -> str:
    """A text in one Unicode form, with one kind of line end and of blank."""
    plain = unicodedata.normalize("NFKC", text).replace("\r\n", "\n").replace("\r", "\n")
    plain = re.sub("[\u200b\ufeff\u00ad]", "", plain)
    return re.sub(r"[ \t]+", " ", re.sub(r"[ \t]+(?=\n|$)", "", plain)).strip()
