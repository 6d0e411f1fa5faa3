"""A request of a replay as data, and as a row for other programs."""

from __future__ import annotations

from collections.abc import Sequence

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import Accounting, BelowMinimum, RequestCost, advisors_of
from ctxdoc.ledger.totals import PARTS
from ctxdoc.outputs.numbers import money_json
from ctxdoc.outputs.report import Cell, Records
from ctxdoc.reports.quoted import said
from ctxdoc.request.codec import Json
from ctxdoc.request.usage import Usage


def request_json(row: RequestCost, excerpts: bool) -> dict[str, Json]:
    """A request: its counters, what it missed, what it cost."""
    request = row.request
    return {
        "id": request.id,
        "source": request.source,
        "line": request.line,
        "at": request.at.isoformat() if request.at else None,
        "model": request.model or None,
        "session": row.session,
        **_counters_json(row),
        **_miss_json(row, excerpts),
        **_waste_json(row),
        "cost": money_json(row.cost),
        "cost_without_cache": money_json(row.without_cache),
        "cost_oracle": money_json(row.oracle),
        "corrected": _usage_json(row.corrected) if row.corrected else None,
        "corrected_cost": money_json(row.corrected_cost),
        "accounting": _accounting_json(row.accounting, excerpts) if row.accounting else None,
        "below_minimum": _below_json(row.below) if row.below else None,
        "contradiction": (row.reported.contradiction or None) if row.reported else None,
        **_passes_json(row),
        "notes": list(request.notes),
    }


def _counters_json(row: RequestCost) -> dict[str, Json]:
    """Reported and simulated counters, and how far to believe the latter."""
    return {
        "reported": _usage_json(row.reported) if row.reported else None,
        "simulated": _usage_json(row.simulated, PARTS[:4]) if row.simulated else None,
        "simulated_origin": str(row.origin) if row.simulated else None,
        "opaque": row.opaque,
        "fidelity": str(row.fidelity) if row.fidelity else None,
        "reason": row.reason,
        "compared_with": row.compared,
    }


def _miss_json(row: RequestCost, excerpts: bool) -> dict[str, Json]:
    """What was missed; 0 only where it is known that nothing was."""
    miss, response = row.miss, row.request.response
    api_reason = (response.miss_reason or None) if response else None
    if miss is None:
        nothing = dict.fromkeys(("cause", "confidence", "explanation", "avoidable"))
        tokens, cost = (0, "0") if row.judged else (None, None)
        return {**nothing, "lost_tokens": tokens, "lost_cost": cost, "api_reason": api_reason}
    return {
        "cause": miss.cause,
        "confidence": str(miss.confidence),
        "explanation": said(miss.explanation, excerpts),
        "avoidable": miss.avoidable,
        "lost_tokens": miss.tokens,
        "lost_cost": money_json(miss.cost),
        "api_reason": api_reason,
    }


def _waste_json(row: RequestCost) -> dict[str, Json]:
    waste = row.waste
    return {
        "waste": waste.cause if waste else None,
        "waste_tokens": waste.tokens if waste else (0 if row.judged else None),
        "waste_cost": money_json(waste.cost) if waste else ("0" if row.judged else None),
    }


def _accounting_json(accounting: Accounting, excerpts: bool) -> dict[str, Json]:
    return {
        "cause": accounting.cause,
        "confidence": str(accounting.confidence),
        "explanation": said(accounting.explanation, excerpts),
    }


def _below_json(below: BelowMinimum) -> dict[str, Json]:
    return {"tokens": below.tokens, "minimum": below.minimum, "missing": below.missing}


def _passes_json(row: RequestCost) -> dict[str, Json]:
    """Passes whose tokens stand outside of the counters."""
    response = row.request.response
    return {
        "compaction": [
            _usage_json(each.usage)
            for each in (response.passes if response else ())
            if each.kind == "compaction"
        ],
        "advisor": [
            {"model": model or None, **_usage_json(usage), "cost": money_json(cost)}
            for model, usage, cost in advisors_of(row)
        ],
    }


def _usage_json(usage: Usage, names: Sequence[str] = PARTS) -> dict[str, Json]:
    return {name: getattr(usage, name) for name in names}


COLUMNS = (
    "number", "source", "line", "at", "session", "model",
    *(f"reported_{name}" for name in PARTS),
    *(f"simulated_{name}" for name in PARTS[:4]),
    "fidelity", "cause", "avoidable", "compared_with", "lost_tokens", "lost_cost",
    "waste", "cost", "cost_without_cache", "cost_oracle", "reason",
)  # fmt: skip


def replay_records(replay: Ledger) -> Records:
    """A row for every request."""
    return Records(COLUMNS, tuple(map(_record, replay.rows)))


def _record(row: RequestCost) -> tuple[Cell, ...]:
    """The values under COLUMNS; those of misses are the same as in the document."""
    request = row.request
    return (
        row.number,
        request.source,
        request.line,
        request.at.isoformat() if request.at else None,
        row.session,
        request.model or None,
        *(getattr(row.reported, name, None) for name in PARTS),
        *(getattr(row.simulated, name, None) for name in PARTS[:4]),
        str(row.fidelity) if row.fidelity else None,
        *_missed(row),
        row.waste.cause if row.waste else None,
        money_json(row.cost),
        money_json(row.without_cache),
        money_json(row.oracle),
        row.reason,
    )


def _missed(row: RequestCost) -> tuple[Cell, ...]:
    """What was missed; 0 only where it is known that nothing was."""
    miss = row.miss
    if miss is None:
        tokens, cost = (0, "0") if row.judged else (None, None)
        return None, None, row.compared, tokens, cost
    return (
        miss.cause,
        str(miss.avoidable).lower(),
        row.compared,
        miss.tokens,
        money_json(miss.cost),
    )
