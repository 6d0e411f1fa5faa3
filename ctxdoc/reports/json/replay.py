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
from ctxdoc.ledger.losses import losses_of
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import lost_of, priced_of
from ctxdoc.outputs.numbers import money_json
from ctxdoc.reports.blocks import kind_name, label_of, unused_names
from ctxdoc.reports.json.request import request_json
from ctxdoc.reports.json.totals import ratio, totals_json
from ctxdoc.request.codec import Json

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
        "requests": [request_json(row, excerpts) for row in replay.rows],
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
        growth: list[Json] = [_growth_json(each, replay, falls) for each in grown[session.id]]
        found.append(
            {
                "id": session.id,
                "parent": session.parent,
                "requests": len(rows),
                "models": [*sorted(models)],
                "cost": money_json(priced_of(rows).amount),
                "lost_cost": money_json(lost_of(rows).amount),
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
