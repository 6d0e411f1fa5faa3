"""The document `ctxdoc/replay/1`: keys in a fixed order, money as strings, unknown as null."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.advice import Advice
from ctxdoc.ledger.fidelity import Fidelity
from ctxdoc.ledger.forecast import Falls, falls_of, forecast
from ctxdoc.ledger.ledger import Grown, Ledger
from ctxdoc.ledger.request_cost import Accounting, BelowMinimum, RequestCost
from ctxdoc.ledger.totals import (
    PARTS,
    Basis,
    Bridge,
    Sum,
    advisors_of,
    idle_of,
    losses_of,
    totals_of,
)
from ctxdoc.outputs.numbers import money_json
from ctxdoc.outputs.report import Records
from ctxdoc.reports.blocks import kind_name, label_of, unused_names
from ctxdoc.reports.diagnose import said
from ctxdoc.request.codec import Json
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import ERROR_SHARE

SCHEMA = "ctxdoc/replay/1"
MOST_BLOCKS = 200
"""Blocks that are listed, the dearest first."""


def replay_json(replay: Ledger, advice: Sequence[Advice], *, excerpts: bool) -> dict[str, Json]:
    """The whole replay as data."""
    log = replay.log
    return {
        "schema": SCHEMA,
        "log": {
            "files": log.files,
            "records": log.records,
            "requests": len(replay.rows),
            "sessions": len(replay.sessions),
            "merged": merged_json(replay),
            "skipped": [
                {"source": s.source, "line": s.line, "reason": s.reason, "other": s.other}
                for s in log.skipped
            ],
            "formats": list(log.formats),
            "traits": [str(trait) for trait in sorted(log.traits)],
        },
        "totals": totals_json(replay),
        "fidelity": fidelity_json(replay.rows),
        "sessions": _sessions_json(replay),
        "causes": causes_json(replay.rows),
        "advice": [
            {
                "id": item.id,
                "what": item.what,
                "why": item.why,
                "cost": money_json(item.cost),
                "is_lost": item.is_lost,
                "pair": list(item.pair) if item.pair else None,
            }
            for item in advice
        ],
        "blocks": _blocks_json(replay, excerpts),
        "blocks_left_out": max(0, len(replay.blocks) - MOST_BLOCKS),
        "requests": [_request_json(row, excerpts) for row in replay.rows],
        "not_checked": list(replay.missing),
    }


def merged_json(replay: Ledger) -> dict[str, Json]:
    """How many records told of responses that others told of too, and how many requests stand in the log
    once more."""
    merged = [row.request.records for row in replay.rows if row.request.records > 1]
    return {
        "records": sum(merged),
        "responses": len(merged),
        "repeated_requests": sum(row.repeated for row in replay.rows),
    }


def totals_json(replay: Ledger) -> dict[str, Json]:
    """The totals: tokens and the bill of what was reported, the simulated ones beside it; what was lost,
    and the share read, of all requests. `basis` says of each how many requests it rests on."""
    totals = totals_of(replay.rows)
    reported, simulated, every = totals.reported, totals.simulated, totals.every
    guessed = totals.guessed_cost.basis.requests + totals.guessed_cost.unpriced
    return {
        **{name: getattr(reported, name, None) for name in (*PARTS[:4], "input", "output")},
        "hit_ratio": ratio(totals.hit_ratio),
        "cost": money_json(totals.cost.amount),
        "cost_without_cache": money_json(totals.without_cache.amount),
        "cost_oracle": money_json(totals.oracle.amount),
        "lost_cost": money_json(totals.lost.amount),
        "avoidable_cost": money_json(totals.avoidable.amount),
        "waste_cost": money_json(totals.waste.amount),
        "unpriced_requests": totals.cost.unpriced + totals.guessed_cost.unpriced,
        "requests_with_counters": reported.basis.requests if reported else 0,
        "simulated": {
            **{name: getattr(simulated, name, None) for name in (*PARTS[:4], "input")},
            "requests_without_counters": guessed,
            "cost_without_counters": money_json(totals.guessed_cost.amount),
            "cost_without_cache": money_json(totals.guessed_without_cache.amount),
            "cost_oracle": money_json(totals.guessed_oracle.amount),
            "error_share": str(ERROR_SHARE) if _is_estimated(replay.rows) else None,
        },
        "every": {name: getattr(every, name, None) for name in (*PARTS[:4], "input", "output")},
        "priced_cost": money_json(totals.priced.amount),
        "unknown_cost": money_json(totals.unknown.amount),
        "gated_cost": money_json(totals.gated.amount),
        "lost_tokens": totals.lost_tokens,
        "requests": totals.requests,
        "checked_requests": totals.checked,
        "repeated_requests": totals.repeated,
        "double_counted": {
            "requests": totals.counted_twice.basis.requests,
            "cost": money_json(totals.counted_twice.amount),
            "corrected_cost": money_json(totals.corrected.amount),
        },
        "refused_requests": totals.refused,
        "contradicting_requests": every.contradicted if every else 0,
        "unpriced": [{"model": name, "requests": count} for name, count in totals.unpriced],
        "own_prices": [
            {"model": name, "source": own.source, "date": own.read.isoformat()}
            for name, own in totals.own_prices
        ],
        "basis": {
            "tokens": _basis_json(reported.basis if reported else None),
            "hit_ratio": _basis_json(every.basis if every else None),
            "cost": _basis_json(totals.cost.basis),
            "cost_without_cache": _basis_json(totals.without_cache.basis),
            "cost_oracle": _basis_json(totals.oracle.basis),
            "priced_cost": _basis_json(totals.priced.basis),
            "lost_cost": _basis_json(totals.lost.basis, totals.lost),
            "avoidable_cost": _basis_json(totals.avoidable.basis, totals.avoidable),
            "unknown_cost": _basis_json(totals.unknown.basis, totals.unknown),
            "waste_cost": _basis_json(totals.waste.basis, totals.waste),
        },
        "idle": _idle_json(replay),
    }


def _basis_json(basis: Basis | None, amount: Sum | None = None) -> dict[str, Json]:
    """How many requests a number rests on, and what their counters are; of losses, how many add to it,
    and how many of these have no price."""
    known = basis or Basis()
    found: dict[str, Json] = {
        "requests": known.requests,
        "simulated": known.simulated,
        "origin": known.origin,
    }
    if amount is not None:
        found |= {"count": amount.count, "unpriced": amount.unpriced}
    return found


def _idle_json(replay: Ledger) -> dict[str, Json] | None:
    """What pauses over the lifetime cost, and what would have bridged them."""
    idle = idle_of(replay)
    if idle is None:
        return None
    return {
        "pauses": idle.pauses,
        "lost_cost": money_json(idle.cost),
        "up_to_an_hour": {"pauses": idle.short, "lost_cost": money_json(idle.short_cost)},
        "over_an_hour": {"pauses": idle.longest, "lost_cost": money_json(idle.longest_cost)},
        "hour_ttl": _bridge_json(idle.hour),
        "keep_alive": _bridge_json(idle.keep_alive),
    }


def _bridge_json(bridge: Bridge) -> dict[str, Json]:
    return {
        "extra_cost": money_json(bridge.extra),
        "saved_cost": money_json(bridge.saved),
        "pays": bridge.pays,
    }


def _is_estimated(rows: Iterable[RequestCost]) -> bool:
    """Whether sizes of requests without counters rest on none at all."""
    return any(
        row.origin is Origin.ESTIMATED for row in rows if row.reported is None and row.simulated
    )


def ratio(share: Decimal | None) -> str | None:
    """A share as a decimal string of four places, or null."""
    return None if share is None else f"{share:.4f}"


def fidelity_json(rows: Iterable[RequestCost]) -> dict[str, Json]:
    """How many requests the model reproduces; those that calls outside of the log warmed, and those
    of several passes, are told apart."""
    counts: defaultdict[Fidelity, int] = defaultdict(int)
    for row in rows:
        if row.fidelity is not None:
            counts[row.fidelity] += 1
    compared = sum(counts[each] for each in COMPARED)
    return {
        "compared": compared,
        "within": counts[Fidelity.WITHIN],
        "share": ratio(Decimal(counts[Fidelity.WITHIN]) / compared if compared else None),
        "warmed_outside": counts[Fidelity.WARMED],
        "several_passes": counts[Fidelity.PASSES],
        "read_less": counts[Fidelity.LESS],
        "other_split": counts[Fidelity.OTHER],
    }


COMPARED = (Fidelity.WITHIN, Fidelity.LESS, Fidelity.OTHER)
"""Requests whose history is in the log, and which are one pass over the prompt."""


def causes_json(rows: Iterable[RequestCost]) -> list[Json]:
    """The misses and the waste by cause, the dearest first."""
    return [
        {
            "id": loss.cause,
            "kind": loss.kind,
            "title": CAUSES[loss.cause].title,
            "count": len(loss.rows),
            "lost_tokens": loss.tokens or 0,
            "lost_cost": money_json(loss.cost),
            "avoidable": loss.avoidable,
            "requests": [row.number for row in loss.rows],
        }
        for loss in losses_of(rows)
    ]


def _sessions_json(replay: Ledger) -> list[Json]:
    grown: defaultdict[str, list[Grown]] = defaultdict(list)
    for each in replay.growth:
        grown[each.session].append(each)
    falls = falls_of(replay)
    found: list[Json] = []
    for session in replay.sessions:
        rows = replay.rows_of(session)
        models = {row.request.model for row in rows}
        totals = totals_of(rows)
        growth: list[Json] = [_growth_json(each, replay, falls) for each in grown[session.id]]
        found.append(
            {
                "id": session.id,
                "parent": session.parent,
                "requests": len(rows),
                "models": [*sorted(models)],
                "cost": money_json(totals.priced.amount),
                "lost_cost": money_json(totals.lost.amount),
                "growth": growth,
            }
        )
    return found


def _growth_json(grown: Grown, replay: Ledger, falls: Falls) -> dict[str, Json]:
    fit = grown.fit
    ahead = forecast(fit, replay.grown_rows(grown), falls.get(grown.rows))
    return {
        "from": min(grown.rows),
        "to": max(grown.rows),
        "turns": fit.turns,
        "prefix_tokens": round(fit.prefix),
        "per_turn_tokens": None if fit.per_turn is None else round(fit.per_turn),
        "law_tokens": round(fit.law),
        "exact_tokens": round(fit.exact),
        "recorded_tokens": fit.recorded,
        "origin": str(replay.origin_of(grown)),
        "r2": None if fit.r2 is None else f"{fit.r2:.4f}",
        "largest_error_tokens": None if fit.per_turn is None else round(fit.largest_error),
        "largest_error_share": None if fit.per_turn is None else f"{fit.largest_share:.4f}",
        "fits": fit.fits,
        "bends": fit.bends,
        "falls_at_tokens": _fall_of(falls, grown),
        "square_overtakes_at_turn": _rounded(fit.square_overtakes_at),
        "window_tokens": ahead.window if ahead else None,
        "turns_left": ahead.turns_left if ahead else None,
        "next": [{"turns": n.turns, "cost": money_json(n.cost)} for n in ahead.next]
        if ahead
        else [],
    }


def _fall_of(falls: Falls, grown: Grown) -> int | None:
    fall = falls.get(grown.rows)
    return fall.tokens if fall else None


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _blocks_json(replay: Ledger, excerpts: bool) -> list[Json]:
    unused = unused_names(replay)
    found: list[Json] = []
    for block in replay.blocks.first(MOST_BLOCKS):
        label = label_of(block, excerpts=excerpts)
        kind = kind_name(block)
        found.append(
            {
                "json_path": block.segment.pointer,
                "kind": kind,
                "label": label,
                "tokens": block.tokens,
                "times_sent": block.times,
                "lifetime_tokens": block.lifetime_tokens,
                "lifetime_cost": money_json(block.cost),
                "origin": str(block.origin),
                "never_called": label in unused if kind == "tool definitions" else None,
            }
        )
    return found


def _request_json(row: RequestCost, excerpts: bool) -> dict[str, Json]:
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
    return {
        "cause": miss.cause if miss else None,
        "confidence": str(miss.confidence) if miss else None,
        "explanation": said(miss.explanation, excerpts) if miss else None,
        "avoidable": miss.avoidable if miss else None,
        "lost_tokens": miss.tokens if miss else (0 if row.judged else None),
        "lost_cost": money_json(miss.cost) if miss else ("0" if row.judged else None),
        "api_reason": (response.miss_reason or None) if response else None,
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
    rows = []
    for row in replay.rows:
        request, miss = row.request, row.miss
        rows.append(
            (
                row.number,
                request.source,
                request.line,
                request.at.isoformat() if request.at else None,
                row.session,
                request.model or None,
                *(getattr(row.reported, name, None) for name in PARTS),
                *(getattr(row.simulated, name, None) for name in PARTS[:4]),
                str(row.fidelity) if row.fidelity else None,
                miss.cause if miss else None,
                str(miss.avoidable).lower() if miss else None,
                row.compared,
                miss.tokens if miss else (0 if row.judged else None),
                money_json(miss.cost) if miss else ("0" if row.judged else None),
                row.waste.cause if row.waste else None,
                money_json(row.cost),
                money_json(row.without_cache),
                money_json(row.oracle),
                row.reason,
            )
        )
    return Records(COLUMNS, tuple(rows))
