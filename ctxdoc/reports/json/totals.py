"""The totals of a replay as data: each with how many requests it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.pauses import Bridge, idle_of
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import (
    PARTS,
    Basis,
    Sum,
    totals_of,
)
from ctxdoc.outputs.numbers import money_json
from ctxdoc.request.codec import Json
from ctxdoc.request.usage import Origin
from ctxdoc.tokens.estimate import ERROR_SHARE


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
