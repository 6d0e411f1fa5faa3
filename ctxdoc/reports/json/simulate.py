"""The document `ctxdoc/simulate/1`: keys in a fixed order, money as strings, unknown as null."""

from __future__ import annotations

from decimal import Decimal

from ctxdoc.outputs.numbers import money_json
from ctxdoc.providers.rules import short_model_id
from ctxdoc.reports.blocks import first_line
from ctxdoc.request.codec import Json
from ctxdoc.simulation.choice import BreakEven
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.laws import Form
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.search import Optimum

SCHEMA = "ctxdoc/simulate/1"


def simulate_json(comparison: Comparison, *, excerpts: bool) -> dict[str, Json]:
    """The whole comparison as data; the unseen blocks are listed with their first lines if asked."""
    session, best, whole = comparison.session, comparison.best, comparison.best_whole
    within = comparison.best_within
    return {
        "schema": SCHEMA,
        "assumptions": {
            "placement": comparison.placement.id,
            "models": [*sorted({short_model_id(call.tariff.model) for call in session.calls})],
            "priced_at": [*sorted({call.tariff.day.isoformat() for call in session.calls})],
            "marks_scaled": comparison.scaled,
            "quality_priced": False,
            "shorter_entries": "live" if comparison.renews_shorter else "die",
            "keep_cost_otherwise": money_json(comparison.otherwise),
            "notes": list(session.assumptions),
        },
        "requests": len(session.calls),
        "left_out": [{"reason": why, "requests": n} for why, n in session.left_out.items()],
        "recorded": {
            "billed": money_json(comparison.billed),
            "simulated": money_json(comparison.recorded.cost) if comparison.recorded else None,
            **_apart(comparison),
        },
        "growth": _growth(comparison),
        "closed_forms": [_form(form) for form in comparison.forms],
        "rows": [row_json(row, comparison, excerpts=excerpts) for row in comparison.rows],
        "as_sent": [row_json(row, comparison) for row in comparison.as_sent],
        "best": _name(best),
        "best_row": _index(best, comparison),
        "best_whole": _name(whole),
        "best_whole_row": _index(whole, comparison),
        "best_whole_placement": whole.placement.id if whole else None,
        "max_unseen": f"{comparison.max_unseen:.4f}",
        "history_tokens": comparison.history_tokens,
        "best_within": _name(within),
        "best_within_row": _index(within, comparison),
        "front": [
            {"strategy": row.text, "placement": row.placement.id, "row": _index(row, comparison)}
            for row in comparison.front
        ],
        "prefix_to_mend": comparison.is_dead,
        "searches": [_found(found) for found in comparison.found],
    }


def _name(row: Result | None) -> str | None:
    return row.name if row else None


def _index(row: Result | None, comparison: Comparison) -> int | None:
    """Where a row stands among the rows; there is only one of it."""
    return next((at for at, each in enumerate(comparison.rows) if each is row), None)


def _apart(comparison: Comparison) -> dict[str, Json]:
    """How far the bill is from the simulation of what was sent, and why."""
    baseline = comparison.baseline
    if baseline is None:
        return {"difference": None, "difference_percent": None, "reasons": []}
    return {
        "difference": money_json(baseline.difference),
        "difference_percent": _percent(baseline.row.cost, baseline.billed),
        "reasons": [
            {"text": each.text, "requests": each.requests, "cost": money_json(each.cost)}
            for each in baseline.reasons
        ],
    }


def row_json(row: Result, comparison: Comparison, *, excerpts: bool = False) -> dict[str, Json]:
    """One row."""
    keep = comparison.against_keep(row)
    usage = row.usage
    found: dict[str, Json] = {
        "strategy": row.name,
        "parameters": {**parameters_json(row)},
        "placement": row.placement.id,
        "requests": row.requests,
        "extra_calls": row.extra_calls,
        "changed_requests": row.changed,
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "cache_write_1h": usage.cache_write_1h,
        "uncached": usage.uncached,
        "output": usage.output,
        "cost": money_json(row.cost),
        "cost_without_cache": money_json(row.cost_without_cache),
        "vs_keep_percent": _percent(row.cost, keep.cost),
        "vs_keep_percent_without_cache": _percent(row.cost_without_cache, keep.cost_without_cache),
        "rewrites": row.rewrites,
        "rewritten_tokens": row.rewritten_tokens,
        "peak_tokens": row.peak,
        "fits_window": row.fits,
        "lost_tokens": row.lost_tokens,
        "unseen_tokens": row.lost_tokens,
        "break_even_turn": row.overtaken_at(keep) if row is not keep else None,
        "vs_sent_percent": _percent(row.cost, comparison.sent.cost),
        "unseen_share": f"{comparison.unseen_share(row):.4f}",
        "within_limit": comparison.is_within(row),
        "on_front": any(row is each for each in comparison.front),
        "rereads": _rereads(comparison.break_even(row)),
        "same_as": list(
            comparison.same.get(_index(row, comparison) or 0, ()) if row is not keep else ()
        ),
        "unpriced_requests": row.unpriced,
        "warnings": [{"text": text, "requests": n} for text, n in row.warnings.items()],
    }
    if excerpts:
        found["lost_blocks"] = [
            {
                "request": item.request,
                "json_path": item.segment.pointer,
                "kind": item.segment.kind,
                "tokens": item.tokens,
                "label": first_line(item.segment),
            }
            for item in row.lost
        ]
    return found


def _rereads(found: BreakEven | None) -> Json:
    """Up to which share of what is gone may be read again; null where nothing that could be is gone."""
    if found is None:
        return None
    return {
        "pays_below_share": None if found.share is None else f"{found.share:.4f}",
        "pays_at_any_share": found.share is None,
        "payloads": found.payloads,
        "cost_if_all": money_json(found.at_all),
    }


def parameters_json(row: Result) -> dict[str, str | int]:
    """Every parameter; of joined strategies with the name ahead."""
    several = len(row.specs) > 1
    return {
        f"{spec.definition.id}.{key}" if several else key: _plain(value)
        for spec in row.specs
        for key, value in spec.parameters.items()
    }


def _plain(value: object) -> str | int:
    """JSON of ctxdoc has no fractions but as text."""
    return value if isinstance(value, str | int) else str(value)


def _percent(value: Decimal | None, other: Decimal | None) -> Json:
    if value is None or not other:
        return None
    return f"{float(value / other - 1) * 100:.2f}"


def _growth(comparison: Comparison) -> Json:
    fit = comparison.growth
    if fit is None:
        return None
    return {
        "whole_session": comparison.whole,
        "turns": fit.turns,
        "prefix_tokens": round(fit.prefix),
        "per_turn_tokens": None if fit.per_turn is None else round(fit.per_turn),
        "law_tokens": round(fit.law),
        "exact_tokens": round(fit.exact),
        "recorded_tokens": fit.recorded,
        "r2": None if fit.r2 is None else f"{fit.r2:.4f}",
    }


def _form(form: Form) -> Json:
    return {
        "name": form.name,
        "strategy": form.row.text if form.row else None,
        "formula": form.formula,
        "unit": form.unit,
        "value": None if form.value is None else round(form.value),
        "simulated": None if form.simulated is None else round(form.simulated),
        "difference_percent": None if form.difference is None else f"{form.difference * 100:.2f}",
    }


def _found(found: Optimum) -> Json:
    best = found.best
    return {
        "parameters": [str(target) for target in found.targets],
        "points": [
            {
                "values": list(point.values),
                "cost": money_json(point.row.cost),
                "input": point.row.usage.input,
                "lost_tokens": point.row.lost_tokens,
            }
            for point in found.points
        ],
        "best": list(best.values) if best and not found.is_flat else None,
        "makes_no_difference": found.is_flat,
        "held": list(found.held),
        "on_edge": found.is_on_edge,
        "empties_conversation": found.is_empty,
    }
