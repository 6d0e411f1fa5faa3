"""The spelling of numbers that all reports share; a dash stands for what is not known."""

from __future__ import annotations

from decimal import Decimal

from ctxdoc.pricing.cost import usd_text


def tokens_text(value: int | None) -> str:
    """A token count, or a dash where it is unknown."""
    return "-" if value is None else f"{value:,}"


def short_text(value: int | None) -> str:
    """A token count in at most five characters, or a dash."""
    if value is None:
        return "-"
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if abs(value) >= 10_000 if unit == "k" else abs(value) >= size:
            part = value / size
            return f"{part:.1f}{unit}" if abs(part) < 100 else f"{part:.0f}{unit}"
    return f"{value:,}"


def change_text(value: Decimal | None, other: Decimal | None) -> str:
    """How much more or less than another amount, in percent, or a dash."""
    if value is None or not other:
        return "-"
    text = f"{float(value / other - 1):+.0%}"
    return "0%" if text in ("+0%", "-0%") else text


def money_text(value: Decimal | None) -> str:
    """USD with as many places as it takes to see it, or a dash where it is unknown."""
    return usd_text(value)


def share_text(part: int | float | Decimal, whole: int | float | Decimal) -> str:
    """A share in percent, or a dash where there is no whole."""
    if not whole:
        return "-"
    share = float(part) / float(whole)
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def counted(count: int, what: str) -> str:
    """A number and its noun, in the singular where it is one."""
    plural = "es" if what.endswith(("s", "ch", "x")) else "s"
    return f"{count:,} {what}{'' if count == 1 else plural}"


def money_json(value: Decimal | None) -> str | None:
    """USD as a decimal string, or null."""
    return None if value is None else f"{value.normalize():f}"
