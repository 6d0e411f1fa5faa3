"""The verdict of a replay: what the log cost, and what of it was for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.pauses import Idle
from ctxdoc.ledger.totals import Totals
from ctxdoc.outputs.numbers import counted, money_text, share_text
from ctxdoc.outputs.report import Headline


def replay_headline(replay: Ledger, totals: Totals, idle: Idle | None) -> Headline:
    """The headline of a replay."""
    log, rows = replay.log, replay.rows
    text = f"{counted(len(rows), 'request')} in {counted(len(replay.sessions), 'session')}"
    tone, word = "plain", "REPLAY"
    cost = totals.priced.amount
    if cost is not None:
        text = _priced(totals, text)
        verdict, tone = _verdict(totals, cost)
        text += f"; {verdict}{_paused(idle)}"
    else:
        text += ", none of them priced" if totals.unpriced else ""
        text += f"; {_unpriced_verdict(totals)}"
    read = (
        f"{counted(log.files, 'file')}, {counted(log.records, 'record')}, {', '.join(log.formats)}"
    )
    return Headline(word, tone, text, f"{read}{_span(replay)}")


def _priced(totals: Totals, text: str) -> str:
    """What the requests cost; that it is not all of them comes first."""
    basis, amount = totals.priced.basis, totals.priced.amount
    how = "" if not basis.simulated else " (simulated)"
    if basis.origin == "mixed":
        how = f" ({basis.simulated:,} of them simulated)"
    about = "about " if basis.simulated else ""
    if basis.requests < totals.requests:
        verb = "is" if basis.requests == 1 else "are"
        return (
            f"{basis.requests:,} of {counted(totals.requests, 'request')} {verb} priced: {about}"
            f"{money_text(amount)} of them{how}"
        )
    return f"{text} cost {about}{money_text(amount)}{how}"


def _verdict(totals: Totals, cost: Decimal) -> tuple[str, str]:
    """What of the cost was for nothing, and its tone."""
    parts = list(_losses(totals))
    if parts:
        tone = "bad" if totals.wasted > cost / 10 else "warn"
        return f"{share_text(totals.wasted, cost)} of it was lost: {', '.join(parts)}", tone
    if totals.refused_by_shape:
        return f"{counted(totals.refused_by_shape, 'request')} would be refused by the API", "bad"
    # Nothing found is good news only where somebody looked.
    if not totals.checked or totals.avoidable.amount is None:
        return "no miss could be checked", "plain"
    whole = totals.checked == totals.requests
    some = "" if whole else f" in the {totals.checked:,} that were checked"
    return f"nothing was lost to avoidable misses{some}", "good"


def _losses(totals: Totals) -> Iterator[str]:
    if totals.avoidable.amount:
        misses = counted(totals.avoidable.count, "avoidable miss")
        yield f"{money_text(totals.avoidable.amount)} in {misses}"
    if totals.waste.amount:
        yield f"{money_text(totals.waste.amount)} in waste"
    if totals.unknown.amount:
        yield f"{money_text(totals.unknown.amount)} in misses of unknown cause"


def _paused(idle: Idle | None) -> str:
    """What pauses cost, those of any length together."""
    if idle is None or not idle.cost:
        return ""
    return f"; of it {money_text(idle.cost)} in {counted(idle.pauses, 'pause')} over the lifetime"


def _unpriced_verdict(totals: Totals) -> str:
    """What was lost where nothing has a price."""
    if totals.lost_tokens and totals.lost.count:
        return f"{totals.lost_tokens:,} cached tokens were lost in misses"
    return "no miss was found" if totals.checked else "no miss could be checked"


def _span(replay: Ledger) -> str:
    times = [row.request.at for row in replay.rows if row.request.at]
    if not times:
        return ""
    first, last = min(times), max(times)
    same_day = first.date() == last.date()
    return f" · {first:%Y-%m-%d %H:%M} to {last:{'%H:%M' if same_day else '%Y-%m-%d %H:%M'}} UTC"
