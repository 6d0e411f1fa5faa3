"""The document `ctxdoc/replay/1`: keys in a fixed order, money as strings, unknown as null."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal

from ctxdoc.advice import Advice
from ctxdoc.canonical import Json
from ctxdoc.causes import CAUSES
from ctxdoc.forecast import forecast
from ctxdoc.model import Usage
from ctxdoc.replay import Grown, Replay
from ctxdoc.reports.base import Records, money_json
from ctxdoc.reports.blocks import kind_name, label_of, unused_names
from ctxdoc.reports.diagnose import said
from ctxdoc.rows import Fidelity, Row
from ctxdoc.tokens import ERROR_SHARE

SCHEMA = "ctxdoc/replay/1"
PARTS = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")
MOST_BLOCKS = 200
"""Blocks that are listed, the dearest first."""


def replay_json(replay: Replay, advice: Sequence[Advice], *, excerpts: bool) -> dict[str, Json]:
    """The whole replay as data."""
    log = replay.log
    return {
        "schema": SCHEMA,
        "log": {
            "files": log.files,
            "records": log.records,
            "requests": len(replay.rows),
            "sessions": len(replay.sessions),
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


def totals_of(usages: Iterable[Usage]) -> dict[str, int]:
    """Sums of the counters, the whole input among them."""
    totals = dict.fromkeys((*PARTS, "input"), 0)
    for usage in usages:
        for name in totals:
            totals[name] += getattr(usage, name)
    return totals


def usages_of(row: Row) -> tuple[Usage, ...]:
    """The reported counters of a request and of its compaction passes, which no other counter holds
    (facts 1.9); empty where it has none."""
    response = row.request.response
    if row.reported is None or response is None or row.repeated:
        return ()
    return (row.reported, *(each.usage for each in response.extra_passes))


def reported_of(replay: Replay) -> list[Usage]:
    """Every reported counter of the log."""
    return [usage for row in replay.rows for usage in usages_of(row)]


def simulated_of(replay: Replay) -> list[Usage]:
    """Every simulated counter of the log."""
    return [row.simulated for row in replay.rows if row.simulated is not None]


def sum_of(costs: Iterable[Decimal | None]) -> Decimal | None:
    """The sum of what is known; None where nothing is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if known else None


def lost_of(rows: Sequence[Row], *, avoidable: bool = False) -> Decimal | None:
    """What misses cost: 0 where there is none, None where nothing is priced."""
    if not any(row.cost is not None for row in rows):
        return None
    misses = [row.miss for row in rows if row.miss]
    return sum(
        (miss.cost or Decimal(0) for miss in misses if miss.avoidable or not avoidable), Decimal(0)
    )


def waste_of(rows: Sequence[Row]) -> Decimal | None:
    """What repeated history cost that was never cached: 0 where there is none, None where nothing is
    priced."""
    if not any(row.cost is not None for row in rows):
        return None
    return sum((row.waste.cost or Decimal(0) for row in rows if row.waste), Decimal(0))


def totals_json(replay: Replay) -> dict[str, Json]:
    """Reported sums; beside them the simulated ones, where there are bodies."""
    rows = replay.rows
    reported, simulated = reported_of(replay), simulated_of(replay)
    totals = totals_of(reported)
    measured = [row for row in rows if row.reported is not None and not row.repeated]
    with_counters = len(measured)
    guessed = [row for row in rows if row.reported is None and row.simulated is not None]
    return {
        **{name: totals[name] if reported else None for name in (*PARTS[:4], "input", "output")},
        "hit_ratio": ratio(totals["cache_read"], totals["input"]),
        "cost": money_json(sum_of(row.cost for row in measured)),
        "cost_without_cache": money_json(sum_of(row.without_cache for row in measured)),
        "cost_oracle": money_json(sum_of(row.oracle for row in measured)),
        "lost_cost": money_json(lost_of(measured)),
        "avoidable_cost": money_json(lost_of(measured, avoidable=True)),
        "waste_cost": money_json(waste_of(measured)),
        "unpriced_requests": sum(row.cost is None for row in measured if not _refused(row)),
        "requests_with_counters": with_counters,
        "simulated": {
            **_simulated_json(simulated),
            "requests_without_counters": len(guessed),
            "cost_without_counters": money_json(sum_of(row.cost for row in guessed)),
            "error_share": str(ERROR_SHARE) if _estimated(guessed) else None,
        },
    }


def _refused(row: Row) -> bool:
    return row.reported is None or not row.reported.input


def _estimated(rows: Iterable[Row]) -> bool:
    return any(str(row.origin) == "estimated" for row in rows)


def _simulated_json(usages: Sequence[Usage]) -> dict[str, Json]:
    totals = totals_of(usages)
    return {name: totals[name] if usages else None for name in (*PARTS[:4], "input")}


def ratio(part: int, whole: int) -> str | None:
    """A share as a decimal string of four places, or null where there is no whole."""
    return f"{Decimal(part) / whole:.4f}" if whole else None


def fidelity_json(rows: Iterable[Row]) -> dict[str, Json]:
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
        "share": ratio(counts[Fidelity.WITHIN], compared),
        "warmed_outside": counts[Fidelity.WARMED],
        "several_passes": counts[Fidelity.PASSES],
        "read_less": counts[Fidelity.LESS],
        "other_split": counts[Fidelity.OTHER],
    }


COMPARED = (Fidelity.WITHIN, Fidelity.LESS, Fidelity.OTHER)
"""Requests whose history is in the log, and which are one pass over the prompt."""


def causes_json(rows: Iterable[Row]) -> list[Json]:
    """The misses by cause, the dearest first."""
    of_cause: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.miss is not None:
            of_cause[row.miss.cause].append(row)
    found: list[tuple[Decimal, str, dict[str, Json]]] = []
    for name, missed in of_cause.items():
        misses = [row.miss for row in missed if row.miss]
        cost = sum_of(miss.cost for miss in misses)
        entry: dict[str, Json] = {
            "id": name,
            "title": CAUSES[name].title,
            "count": len(misses),
            "lost_tokens": sum(miss.tokens or 0 for miss in misses),
            "lost_cost": money_json(cost),
            "avoidable": misses[0].avoidable,
            "requests": [row.number for row in missed],
        }
        found.append((-(cost or Decimal(0)), name, entry))
    return [entry for _, _, entry in sorted(found, key=lambda row: row[:2])]


def _sessions_json(replay: Replay) -> list[Json]:
    grown: defaultdict[str, list[Grown]] = defaultdict(list)
    for each in replay.growth:
        grown[each.session].append(each)
    found: list[Json] = []
    for session in replay.sessions:
        rows = replay.rows_of(session)
        models = {row.request.model for row in rows}
        growth: list[Json] = [_growth_json(each, replay) for each in grown[session.id]]
        found.append(
            {
                "id": session.id,
                "parent": session.parent,
                "requests": len(rows),
                "models": [*sorted(models)],
                "cost": money_json(sum_of(row.cost for row in rows)),
                "lost_cost": money_json(lost_of(rows)),
                "growth": growth,
            }
        )
    return found


def _growth_json(grown: Grown, replay: Replay) -> dict[str, Json]:
    fit = grown.fit
    ahead = forecast(fit, replay.grown_rows(grown))
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
        "square_overtakes_at_turn": _rounded(fit.square_overtakes_at),
        "window_tokens": ahead.window if ahead else None,
        "turns_left": ahead.turns_left if ahead else None,
        "next": [{"turns": n.turns, "cost": money_json(n.cost)} for n in ahead.next]
        if ahead
        else [],
    }


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _blocks_json(replay: Replay, excerpts: bool) -> list[Json]:
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


def _request_json(row: Row, excerpts: bool) -> dict[str, Json]:
    request = row.request
    usage, miss, waste = row.reported, row.miss, row.waste
    return {
        "id": request.id,
        "source": request.source,
        "line": request.line,
        "at": request.at.isoformat() if request.at else None,
        "model": request.model or None,
        "session": row.session,
        "reported": _usage_json(usage) if usage else None,
        "simulated": _usage_json(row.simulated, PARTS[:4]) if row.simulated else None,
        "simulated_origin": str(row.origin) if row.simulated else None,
        "opaque": row.opaque,
        "fidelity": str(row.fidelity) if row.fidelity else None,
        "reason": row.reason,
        "compared_with": row.compared,
        "cause": miss.cause if miss else None,
        "confidence": str(miss.confidence) if miss else None,
        "explanation": said(miss.explanation, excerpts) if miss else None,
        "avoidable": miss.avoidable if miss else None,
        "lost_tokens": miss.tokens if miss else (0 if row.judged else None),
        "lost_cost": money_json(miss.cost) if miss else ("0" if row.judged else None),
        "api_reason": (row.request.response.miss_reason or None) if row.request.response else None,
        "waste": waste.cause if waste else None,
        "waste_tokens": waste.tokens if waste else (0 if row.judged else None),
        "cost": money_json(row.cost),
        "cost_without_cache": money_json(row.without_cache),
        "contradiction": (usage.contradiction or None) if usage else None,
        "compaction": [
            _usage_json(each.usage)
            for each in (request.response.passes if request.response else ())
            if each.kind == "compaction"
        ],
        "notes": list(request.notes),
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


def replay_records(replay: Replay) -> Records:
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
