"""The report on a session in hand: how it stands, and what each of the four ways to go on costs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ctxdoc.outputs.numbers import (
    change_text,
    counted,
    money_json,
    money_text,
    share_text,
    short_text,
    tokens_text,
)
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Records, Report, Row, Table
from ctxdoc.replay.sessions import short_name
from ctxdoc.request.codec import Json
from ctxdoc.simulation.outlook import Outlook, Way

SCHEMA = "ctxdoc/advise/1"
TITLES = {
    "go_on": "go on",
    "compact": "compact now",
    "handoff": "hand off to a new session with a summary",
    "wait": "wait until the cache is cold, then clear old tool results",
}
NAMES = {"go_on": "go on", "compact": "compact", "handoff": "hand off", "wait": "wait"}


def advise_report(outlook: Outlook) -> Report:
    """The report on a session in hand."""
    return Report(
        make_parts=lambda: _parts(outlook),
        make_data=lambda: _document(outlook),
        make_records=lambda: _records(outlook),
    )


def _parts(outlook: Outlook) -> Iterator[Part]:
    yield Headline("ADVICE", _tone(outlook), _advice_text(outlook), _session_text(outlook))
    yield Fields(tuple(_rows(outlook)))
    yield _table(outlook)
    yield Notes("Assumed", tuple(_assumed(outlook)))


def _tone(outlook: Outlook) -> str:
    return "good" if outlook.best is outlook.going_on else "warn"


def _advice_text(outlook: Outlook) -> str:
    best, going_on = outlook.best, outlook.going_on
    ahead = counted(outlook.calls, "call")
    if going_on.total is None:
        return "the model has no price: nothing can be weighed"
    if best is going_on:
        return f"{TITLES['go_on']}: the next {ahead} cost {money_text(going_on.total)}, and no other way less"
    pays = "" if best.pays_after is None else f"; it pays from call {best.pays_after:,} on"
    return (
        f"{TITLES[best.id]}: the next {ahead} cost {money_text(best.total)} instead of "
        f"{money_text(going_on.total)} ({change_text(best.total, going_on.total)}){pays}"
    )


def _session_text(outlook: Outlook) -> str:
    return f"session {short_name(outlook.name)}, {outlook.model}"


def _rows(outlook: Outlook) -> Iterator[Row]:
    history = outlook.prompt - outlook.fixed
    yield Row(
        "Session",
        f"{counted(outlook.requests, 'call')}; the last prompt has {tokens_text(outlook.prompt)} tokens: "
        f"{tokens_text(outlook.fixed)} of tools and system prompt, {tokens_text(history)} of history",
    )
    if outlook.per_call:
        left = max(0, (outlook.window - outlook.prompt) // outlook.per_call)
        yield Row(
            "Growth",
            f"{tokens_text(outlook.per_call)} tokens a call; {counted(left, 'call')} until the window of "
            f"{tokens_text(outlook.window)} is full",
        )
    yield Row("Cache", _cache_text(outlook))
    going_on = outlook.going_on
    yield Row(
        "Next call",
        f"{money_text(going_on.next_call)} now, {money_text(going_on.next_after_pause)} after a pause beyond "
        f"{_lifetime(outlook.ttl)}",
    )
    best = outlook.compact_at
    if best.by_formula is not None:
        yield Row(
            "Window",
            f"compacting is cheapest at {short_text(best.by_formula)} tokens, about each "
            f"{counted(best.turns or 0, 'call')}: P + summary + a·√(2·C/(r·a))",
        )


def _cache_text(outlook: Outlook) -> str:
    if outlook.alive_for is None:
        return "nothing is known of times: taken as warm"
    if not outlook.alive_for:
        return f"cold: the last call is longer ago than {_lifetime(outlook.ttl)}"
    minutes, seconds = divmod(int(outlook.alive_for), 60)
    return f"warm: the entry of the last call lives for {minutes}:{seconds:02d} more ({_lifetime(outlook.ttl)})"


def _lifetime(ttl: str) -> str:
    return "an hour" if ttl == "1h" else "5 minutes"


def _table(outlook: Outlook) -> Table:
    return Table(
        title=f"Over the next {counted(outlook.calls, 'call')}",
        columns=(
            "way", "once", "next call", "after a pause", "pays from call", "in all", "± go on", "unseen",
        ),
        rows=tuple(tuple(_cells(way, outlook)) for way in outlook.ways),
        optional=(3, 7),
    )  # fmt: skip


def _cells(way: Way, outlook: Outlook) -> Iterator[str]:
    going_on = outlook.going_on
    same = way is going_on
    yield NAMES[way.id]
    yield "-" if same else _signed(way.once)
    yield money_text(way.next_call)
    yield money_text(way.next_after_pause)
    yield "-" if same else "never here" if way.pays_after is None else f"{way.pays_after:,}"
    yield money_text(way.total)
    yield "-" if same else change_text(way.total, going_on.total)
    history = outlook.prompt - outlook.fixed
    # What the next call adds may be summed up with the rest.
    yield share_text(min(way.unseen, history), history) if way.unseen else "0"


def _signed(value: Decimal | None) -> str:
    return money_text(value) if value is None or value >= 0 else f"-{money_text(-value)}"


def _assumed(outlook: Outlook) -> Iterator[str]:
    yield (
        f"the session goes on as it grew: {tokens_text(outlook.per_call)} tokens a call, for "
        f"{counted(outlook.calls, 'call')} more (--calls N)"
    )
    yield f"a summary has {tokens_text(outlook.summary)} tokens (--summary N), and the same model writes it"
    yield "what the model does worse without what it no longer sees is not priced"
    yield "once: what the next call costs more than going on; wait: the next call is sent after a pause"


def way_rows(outlook: Outlook) -> list[dict[str, Json]]:
    """The ways, one flat dict each."""
    return [
        {
            "way": way.id,
            "strategy": way.strategy,
            "once": money_json(way.once),
            "next_call": money_json(way.next_call),
            "next_call_after_pause": money_json(way.next_after_pause),
            "pays_after_calls": way.pays_after,
            "cost": money_json(way.total),
            "unseen_tokens": way.unseen,
        }
        for way in outlook.ways
    ]


def _document(outlook: Outlook) -> dict[str, Json]:
    ways: list[Json] = [*way_rows(outlook)]
    return {
        "schema": SCHEMA,
        "session": outlook.name,
        "model": outlook.model,
        "requests": outlook.requests,
        "prompt_tokens": outlook.prompt,
        "prefix_tokens": outlook.fixed,
        "history_tokens": outlook.prompt - outlook.fixed,
        "per_call_tokens": outlook.per_call,
        "window_tokens": outlook.window,
        "ttl": outlook.ttl,
        "last_call_at": outlook.last.isoformat() if outlook.last else None,
        "now": outlook.now.isoformat() if outlook.now else None,
        "alive_for_seconds": None if outlook.alive_for is None else round(outlook.alive_for),
        "calls": outlook.calls,
        "summary_tokens": outlook.summary,
        "advice": outlook.best.id,
        "saved": money_json(outlook.saved),
        "ways": ways,
        "best_window": {
            "tokens": outlook.compact_at.by_formula,
            "calls": outlook.compact_at.turns,
        },
    }


def _records(outlook: Outlook) -> Records:
    rows = way_rows(outlook)
    return Records(
        columns=tuple(rows[0]),
        rows=tuple(tuple(_cell(value) for value in row.values()) for row in rows),
    )


def _cell(value: Json) -> str | int | None:
    return value if isinstance(value, str | int) else None
