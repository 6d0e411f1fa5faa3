"""The document `ctxdoc/gate/1`: keys in a fixed order, money as strings, unknown as null."""

from __future__ import annotations

from decimal import Decimal

from ctxdoc.gate.limits import Value
from ctxdoc.gate.outcome import Breach, Check, GateOutcome
from ctxdoc.outputs.numbers import money_json
from ctxdoc.reports.excerpt import excerpt
from ctxdoc.reports.quoted import said
from ctxdoc.request.codec import Json

SCHEMA = "ctxdoc/gate/1"


def gate_json(gated: GateOutcome, excerpts: bool = True) -> dict[str, Json]:
    """The document `ctxdoc/gate/1`."""
    return {
        "schema": SCHEMA,
        "verdict": str(gated.verdict),
        "subject": gated.subject,
        "limits": [_check_json(check) for check in gated.checks],
        "findings": [_breach_json(breach, excerpts) for breach in gated.breaches],
        "baseline": {
            "path": gated.baseline or None,
            "updated": gated.updated,
            "changes": [
                {"lines": list(changed.lines), "invalidated_tokens": changed.invalidates}
                for changed in gated.changed
            ],
        },
        "not_checked": list(gated.not_checked),
    }


def _check_json(check: Check) -> Json:
    return {
        "name": check.name,
        "unit": check.unit,
        "limit": _number(check.limit, check.unit),
        "value": _number(check.value, check.unit),
        "verdict": str(check.verdict),
        "where": check.where or None,
        "why": check.why or None,
    }


def _number(value: Value | None, unit: str) -> Json:
    """Whole numbers as such, money as the replay has it, shares to six places."""
    if value is None or isinstance(value, int):
        return value
    exact = Decimal(str(value))
    return money_json(exact if unit == "USD" else exact.quantize(Decimal("0.000001")))


def _breach_json(breach: Breach, excerpts: bool) -> Json:
    difference = breach.difference
    return {
        "cause": breach.cause.id,
        "title": breach.cause.title,
        "confidence": str(breach.confidence),
        "breaks": breach.breaks,
        "explanation": said(breach.explanation, excerpts),
        "fix": breach.advice or breach.cause.fix,
        "source": breach.source,
        "line": breach.line,
        "json_path": difference.pointer if difference else None,
        "byte": difference.byte if difference else None,
        "before": excerpt(difference.before, difference.byte) if difference and excerpts else None,
        "after": excerpt(difference.after, difference.byte) if difference and excerpts else None,
        "requests": list(breach.requests),
        "surroundings": list(breach.surroundings),
        "lost_tokens": breach.tokens,
        "lost_cost": money_json(breach.cost),
    }
