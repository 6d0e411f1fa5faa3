"""What the gate says of a breach and of a limit, in words that its report and its checks share."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ctxdoc.gate.limits import Value
from ctxdoc.gate.outcome import STABLE, Breach, Check, GateOutcome, Verdict
from ctxdoc.outputs.numbers import counted, money_text
from ctxdoc.outputs.printable import one_line
from ctxdoc.outputs.report import Row

UNITS = {"requests": "request", "surroundings": "surrounding", "prefixes": "prefix"}


def summary_text(gated: GateOutcome) -> str:
    """The verdict in one sentence."""
    broken = [check for check in gated.checks if check.verdict is Verdict.BROKEN]
    if broken:
        names = ", ".join(_broken_name(check, gated) for check in broken)
        return f"{len(broken)} of {counted(len(gated.checks), 'limit')} broken: {names}"
    unchecked = [check for check in gated.checks if check.verdict is Verdict.UNCHECKED]
    if unchecked:
        return f"{unchecked[0].name} could not be checked: {unchecked[0].why}"
    written = f"; {gated.baseline} is written" if gated.updated else ""
    return f"{counted(len(gated.checks), 'limit')} held{written}"


def _broken_name(check: Check, gated: GateOutcome) -> str:
    """A limit by its name; that of a stable prefix says nothing without the causes."""
    if check.name != STABLE:
        return check.name
    causes = dict.fromkeys(each.cause.id for each in gated.breaches if each.breaks)
    return f"{check.name} ({', '.join(causes)})"


def where_text(breach: Breach) -> str:
    """The file, line and place of a breach."""
    line = f":{breach.line}" if breach.line else ""
    difference = breach.difference
    if difference is None:
        return one_line(f"{breach.source}{line}")
    byte = f", byte {difference.byte:,}" if difference.byte is not None else ""
    return one_line(f"{breach.source}{line} {difference.pointer}{byte}")


def invalidated_rows(tokens: int | None) -> Iterator[Row]:
    """Lines on the cached tokens that a change of the baseline invalidates."""
    if tokens is not None:
        yield Row(
            "",
            f"invalidates about {tokens:,} cached tokens of prefix (estimated), and the history behind "
            "them, for each session that runs when it is deployed",
        )


def value_text(value: Value | None, unit: str) -> str:
    """A limit, or what was found, with its unit."""
    if value is None:
        return "-"
    match unit:
        case "share":
            return f"{float(value):.1%}"
        case "USD":
            return money_text(Decimal(str(value)))
        case "tokens":
            return f"{int(value):,} tokens"
        case _:
            return counted(int(value), UNITS.get(unit, unit))
