"""The report of a replayed log: what it cost, how it grows, what was missed, what is dear, what to do."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from ctxdoc.advice import Advice, advise
from ctxdoc.causes import CAUSES
from ctxdoc.forecast import Forecast, forecast
from ctxdoc.model import Origin, Skipped, Usage
from ctxdoc.replay import Grown, Replay
from ctxdoc.reports.base import (
    Fields,
    Headline,
    Notes,
    Part,
    Report,
    Table,
    counted,
    money_text,
    share_text,
    tokens_text,
)
from ctxdoc.reports.base import Row as Line
from ctxdoc.reports.blocks import kind_name, kinds_of, label_of, unused_names
from ctxdoc.reports.chart import chart_of
from ctxdoc.reports.replay_json import (
    COMPARED,
    lost_of,
    replay_json,
    replay_records,
    reported_of,
    simulated_of,
    sum_of,
    totals_of,
)
from ctxdoc.rows import Fidelity, Row
from ctxdoc.sessions import short_name
from ctxdoc.tokens import ERROR_SHARE

SHOWN_SESSIONS = 6
SHOWN_CAUSES = 8
SHOWN_BLOCKS = 8
SHOWN_SKIPPED = 5
SHOWN_STRETCHES = 3
SHOWN_REQUESTS = 4


def replay_report(replay: Replay, *, excerpts: bool = True, log_name: str = "LOG") -> Report:
    """The parts in the order in which a person reads them; every request is in the data.

    `log_name` is how the commands that show more name the log.
    """
    advice = advise(replay)
    return Report(
        parts=tuple(_parts(replay, advice, excerpts, log_name)),
        make_data=lambda: replay_json(replay, advice, excerpts=excerpts),
        make_records=lambda: replay_records(replay),
    )


def _parts(
    replay: Replay, advice: Sequence[Advice], excerpts: bool, log_name: str
) -> Iterator[Part]:
    yield _headline(replay)
    yield Fields(tuple(_main_rows(replay)))
    yield from _misses(replay.rows)
    if advice:
        yield Fields(tuple(_advice_rows(advice, log_name)))
    yield from _blocks(replay, excerpts)
    yield from _sessions(replay)
    chart = chart_of(replay)
    if chart is not None:
        yield chart
    skipped = [item for item in replay.log.skipped if not item.other]
    if skipped:
        yield Notes(f"Skipped: {len(skipped):,}", tuple(_reasons(skipped)))
    other = [item for item in replay.log.skipped if item.other]
    if other:
        yield Notes(f"No model call: {counted(len(other), 'record')}", tuple(_reasons(other)))
    missing = (*_not_judged(replay.rows), *replay.missing)
    if missing:
        yield Notes("Not checked, because", missing)


def _headline(replay: Replay) -> Headline:
    log, rows = replay.log, replay.rows
    cost, lost = _cost_of(rows), lost_of(rows, avoidable=True)
    text = f"{counted(len(rows), 'request')} in {counted(len(replay.sessions), 'session')}"
    tone, word = "plain", "REPLAY"
    if cost is not None:
        simulated = any(row.reported is None and row.cost is not None for row in rows)
        text += (
            f" cost about {money_text(cost)} (simulated)"
            if simulated
            else f" cost {money_text(cost)}"
        )
        avoidable = sum(row.miss is not None and row.miss.avoidable for row in rows)
        if lost:
            tone = "bad" if lost > cost / 10 else "warn"
            misses = counted(avoidable, "avoidable miss")
            text += f"; {share_text(lost, cost)} of it went into {misses}"
        elif any(row.judged for row in rows):
            tone = "good"
            text += "; nothing went into avoidable misses"
    read = (
        f"{counted(log.files, 'file')}, {counted(log.records, 'record')}, {', '.join(log.formats)}"
    )
    return Headline(word, tone, text, f"{read}{_span(replay)}")


def _span(replay: Replay) -> str:
    times = [row.request.at for row in replay.rows if row.request.at]
    if not times:
        return ""
    first, last = min(times), max(times)
    same_day = first.date() == last.date()
    return f" · {first:%Y-%m-%d %H:%M} to {last:{'%H:%M' if same_day else '%Y-%m-%d %H:%M'}} UTC"


def _cost_of(rows: Iterable[Row]) -> Decimal | None:
    return sum_of(row.cost for row in rows)


def _main_rows(replay: Replay) -> Iterator[Line]:
    rows = replay.rows
    yield Line("Money", _money(rows), strong=True)
    reported = reported_of(replay)
    if reported:
        without = sum(row.reported is None for row in rows)
        rest = f"; {counted(without, 'request')} without counters" if without else ""
        yield Line("Tokens", f"{_tokens(reported)}; output {_output(reported)} (reported{rest})")
    simulated = simulated_of(replay)
    if simulated:
        yield Line("" if reported else "Tokens", f"{_tokens(simulated)} ({_how(rows)})")
    if not reported and not simulated:
        yield Line("Tokens", "- (no request of the log has counters or a body)")
    fidelity = _fidelity(rows)
    if fidelity:
        yield Line("Model", fidelity)
    yield from _growth(replay)


def _money(rows: Sequence[Row]) -> str:
    cost = _cost_of(rows)
    unpriced = sum(
        row.cost is None and row.counters is not None and not row.repeated for row in rows
    )
    rest = f"; {counted(unpriced, 'request')} of unpriced models" if unpriced else ""
    if cost is None:
        return f"-{rest}"
    known = [row for row in rows if row.cost is not None]
    bare = sum_of(row.without_cache for row in known)
    parts = [f"{money_text(cost)} paid", f"{money_text(bare)} without a cache"]
    bounded = [row for row in known if row.oracle is not None]
    if len(bounded) == len(known):
        parts.append(f"{money_text(sum_of(row.oracle for row in known))} at best (oracle)")
    guessed = sum(row.reported is None for row in known)
    if guessed:
        parts.append(f"output is not priced for {counted(guessed, 'request')} without counters")
    return " · ".join(parts) + rest


def _tokens(usages: Sequence[Usage]) -> str:
    totals = totals_of(usages)
    whole = totals["input"]
    written = totals["cache_write_5m"] + totals["cache_write_1h"]
    hour = totals["cache_write_1h"]
    parts = (
        f"read {share_text(totals['cache_read'], whole)}",
        f"written {share_text(written, whole)}"
        + (f" (for an hour {share_text(hour, written)} of it)" if hour else ""),
        f"uncached {share_text(totals['uncached'], whole)}",
    )
    return f"input {whole:,}: {' · '.join(parts)}"


def _output(usages: Sequence[Usage]) -> str:
    return f"{totals_of(usages)['output']:,}"


def _how(rows: Sequence[Row]) -> str:
    guessed = any(row.origin is Origin.ESTIMATED for row in rows if row.simulated)
    return f"simulated; sizes estimated, ±{ERROR_SHARE:.0%}" if guessed else "simulated"


def _fidelity(rows: Sequence[Row]) -> str:
    kinds = [row.fidelity for row in rows if row.fidelity is not None]
    if not kinds:
        return ""
    compared = sum(kind in COMPARED for kind in kinds)
    within = kinds.count(Fidelity.WITHIN)
    text = f"{within:,} of {counted(compared, 'request')} reproduced within 3 % or 20 tokens"
    if kinds.count(Fidelity.WARMED):
        text += f"; {kinds.count(Fidelity.WARMED):,} warmed by calls outside the log"
    if kinds.count(Fidelity.PASSES):
        text += f"; {kinds.count(Fidelity.PASSES):,} of several passes (server tools)"
    return text


def _growth(replay: Replay) -> Iterator[Line]:
    """The stretches that sent most, of three requests or more."""
    long = [grown for grown in replay.growth if grown.fit.turns > 2]
    ranked = sorted(long, key=lambda grown: (-grown.fit.recorded, grown.rows[0]))
    several = len(replay.sessions) > 1
    for place, grown in enumerate(ranked[:SHOWN_STRETCHES]):
        origin = replay.origin_of(grown)
        yield Line("" if place else "Growth", _stretch(grown, origin, several))
        if place == 0:
            ahead = forecast(grown.fit, replay.grown_rows(grown))
            yield from (Line("", line) for line in _outlook(grown, ahead))
    if len(ranked) > SHOWN_STRETCHES:
        more = len(ranked) - SHOWN_STRETCHES
        yield Line("", f"… and {counted(more, 'more stretch')} (--format json lists them)")


def _stretch(grown: Grown, origin: Origin, several: bool) -> str:
    fit = grown.fit
    where = f"requests {grown.rows[0]:,} to {grown.rows[-1]:,}"
    where += f" of {short_name(grown.session)}" if several else ""
    r2 = "" if fit.r2 is None else f", R² {fit.r2:.3f}"
    return (
        f"{where}: P {fit.prefix:,.0f} + {fit.per_turn or 0:,.0f} a turn{r2}; "
        f"n·P + a·n²/2 = {fit.law:,.0f}, exactly {fit.exact:,.0f}, "
        f"{'recorded' if origin is Origin.REPORTED else origin} {fit.recorded:,}"
    )


def _outlook(grown: Grown, ahead: Forecast | None) -> Iterator[str]:
    overtakes = grown.fit.square_overtakes_at
    if overtakes is not None:
        passed = "did" if overtakes < grown.fit.turns else "will"
        yield f"the square term {passed} overtake the linear one at turn {overtakes:,.0f}"
    if ahead is None:
        return
    left = ahead.turns_left
    text = f"the window of {ahead.window:,} tokens "
    text += f"is full in {counted(left, 'turn')}" if left is not None else "does not fill up"
    costs = [f"{n.turns} turns {money_text(n.cost)}" for n in ahead.next if n.cost is not None]
    if costs:
        read = f"{ahead.read_share:.0%} read"
        text += f"; the next {', '.join(costs)} if nothing changes ({read}, simulated)"
    yield text


def _misses(rows: Sequence[Row]) -> Iterator[Part]:
    of_cause: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.miss is not None:
            of_cause[row.miss.cause].append(row)
    if not of_cause:
        return
    ranked = sorted(of_cause, key=lambda name: (-_lost(of_cause[name]), name))
    table = tuple(_miss_row(name, of_cause[name]) for name in ranked[:SHOWN_CAUSES])
    yield Table("Misses", ("cause", "requests", "tokens", "lost", "avoidable", "where"), table)
    if len(ranked) > SHOWN_CAUSES:
        yield Notes("", (f"… and {counted(len(ranked) - SHOWN_CAUSES, 'more cause')}",))


def _lost(rows: Sequence[Row]) -> Decimal:
    return sum_of(row.miss.cost for row in rows if row.miss) or Decimal(0)


def _miss_row(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    misses = [row.miss for row in rows if row.miss]
    tokens = [miss.tokens for miss in misses if miss.tokens is not None]
    numbers = ", ".join(f"{row.number}" for row in rows[:SHOWN_REQUESTS])
    more = ", …" if len(rows) > SHOWN_REQUESTS else ""
    return (
        name,
        f"{len(rows):,}",
        tokens_text(sum(tokens) if tokens else None),
        money_text(sum_of(miss.cost for miss in misses)),
        "yes" if misses[0].avoidable else "no",
        f"#{numbers}{more}",
    )


def _advice_rows(advice: Sequence[Advice], log_name: str) -> Iterator[Line]:
    for place, item in enumerate(advice, start=1):
        yield Line("" if place > 1 else "To do", f"{place}. {item.what}", strong=True)
        yield Line("", f"   {money_text(item.cost)} · {item.why}")
        yield Line("", f"   {_command(item, log_name)}")


def _command(item: Advice, log_name: str) -> str:
    log_name = shlex.quote(log_name)
    if item.pair:
        return f"ctxdoc diagnose {log_name} --pair {item.pair[0]},{item.pair[1]}"
    if item.id in CAUSES:
        return f"ctxdoc explain {item.id}"
    return f"ctxdoc replay {log_name} --format json lists the blocks"


def _blocks(replay: Replay, excerpts: bool) -> Iterator[Part]:
    blocks = replay.blocks
    if not blocks:
        return
    kinds = kinds_of(blocks)
    whole = sum((kind.cost or Decimal(0) for kind in kinds), Decimal(0))
    yield Table(
        "Where the input goes",
        ("part", "blocks", "tokens sent", "cost", "share"),
        tuple(
            (
                kind.name,
                f"{kind.count:,}",
                f"{kind.tokens:,}",
                money_text(kind.cost) + (" and more" if kind.unpriced and kind.cost else ""),
                "-" if kind.cost is None else share_text(kind.cost, whole),
            )
            for kind in kinds
        ),
    )
    unused = unused_names(blocks)
    rows = []
    for block in blocks.first(SHOWN_BLOCKS):
        kind, label = kind_name(block), label_of(block, excerpts=excerpts)
        never = " (never called)" if kind == "tool definitions" and label in unused else ""
        rows.append(
            (
                f"{block.tokens:,}",
                f"{block.times:,}",
                f"{block.lifetime_tokens:,}",
                money_text(block.cost),
                block.segment.pointer,
                f"{label}{never}",
            )
        )
    yield Table(
        "Dearest blocks over their life",
        ("tokens", "sent", "in all", "cost", "JSON path", "what"),
        tuple(rows),
    )


def _sessions(replay: Replay) -> Iterator[Part]:
    sessions = replay.sessions
    if len(sessions) < 2:
        return
    costs = {s.id: _cost_of(replay.rows_of(s)) for s in sessions}
    ranked = sorted(sessions, key=lambda s: (-(costs[s.id] or Decimal(0)), s.requests[0]))
    rows = []
    for session in ranked[:SHOWN_SESSIONS]:
        own = replay.rows_of(session)
        start = own[0].request.at
        rows.append(
            (
                short_name(session.id),
                short_name(session.parent or "-"),
                f"{len(own):,}",
                money_text(costs[session.id]),
                money_text(_lost(own)),
                start.strftime("%Y-%m-%d %H:%M") if start else "-",
                ", ".join(sorted({row.request.model or "-" for row in own})),
            )
        )
    columns = ("session", "parent", "requests", "cost", "lost", "first", "models")
    yield Table("Sessions", columns, tuple(rows))
    if len(sessions) > SHOWN_SESSIONS:
        more = counted(len(sessions) - SHOWN_SESSIONS, "more session")
        yield Notes("", (f"… and {more}; --session ID shows one",))


def _not_judged(rows: Sequence[Row]) -> Iterator[str]:
    """Why requests were not looked at, with how many of them."""
    reasons: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        if row.reason and not row.judged:
            reasons[row.reason] += 1
    ranked = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    for reason in ranked[:SHOWN_SKIPPED]:
        yield f"{counted(reasons[reason], 'request')}: misses, because {reason}"
    opaque = sum(row.opaque for row in rows)
    if opaque:
        yield f"{counted(opaque, 'request')}: sizes of documents, files, servers or provider tools"


def _reasons(skipped: Iterable[Skipped]) -> Iterator[str]:
    reasons: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for item in skipped:
        reasons[item.reason] = reasons.get(item.reason, 0) + 1
        firsts.setdefault(item.reason, f"{item.source}, line {item.line}")
    ranked = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    for reason in ranked[:SHOWN_SKIPPED]:
        yield f"{reasons[reason]:,} x {reason} (first: {firsts[reason]})"
    if len(ranked) > SHOWN_SKIPPED:
        yield f"… and {len(ranked) - SHOWN_SKIPPED:,} more reasons"
