"""The report of a replayed log: what it cost, how it grows, what was missed, what is dear, what to do."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from ctxdoc.advice import Advice, advise
from ctxdoc.causes import CAUSES
from ctxdoc.model import Origin, Skipped, Usage
from ctxdoc.providers.rules import short_model_id
from ctxdoc.replay import Replay
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
from ctxdoc.reports.growth import growth_rows
from ctxdoc.reports.replay_json import (
    COMPARED,
    lost_of,
    replay_json,
    replay_records,
    reported_of,
    simulated_of,
    sum_of,
    totals_of,
    waste_of,
)
from ctxdoc.rows import Fidelity, Row
from ctxdoc.sessions import short_name
from ctxdoc.tokens import ERROR_SHARE

SHOWN_SESSIONS = 6
SHOWN_CAUSES = 8
SHOWN_BLOCKS = 8
SHOWN_SKIPPED = 5
SHOWN_REQUESTS = 4


def replay_report(
    replay: Replay, *, excerpts: bool = True, logs: Sequence[str] = ("LOG",)
) -> Report:
    """The parts in the order in which a person reads them; every request is in the data.

    `logs` are the paths as they were given, for the commands that show more.
    """
    advice = advise(replay)
    return Report(
        parts=tuple(_parts(replay, advice, excerpts, logs)),
        make_data=lambda: replay_json(replay, advice, excerpts=excerpts),
        make_records=lambda: replay_records(replay),
    )


def _parts(
    replay: Replay, advice: Sequence[Advice], excerpts: bool, logs: Sequence[str]
) -> Iterator[Part]:
    yield _headline(replay)
    yield Fields(tuple(_main_rows(replay)))
    yield from _misses(replay.rows)
    if advice:
        yield Fields(tuple(_advice_rows(replay, advice, logs)))
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
    yield Notes("More", ("ctxdoc explain replay says what the words mean",))


def _headline(replay: Replay) -> Headline:
    log, rows = replay.log, replay.rows
    cost = _cost_of(rows)
    text = f"{counted(len(rows), 'request')} in {counted(len(replay.sessions), 'session')}"
    tone, word = "plain", "REPLAY"
    if cost is not None:
        priced = [row for row in rows if row.cost is not None]
        guessed = sum(row.reported is None for row in priced)
        how = "" if not guessed else " (simulated)"
        if guessed and guessed < len(priced):
            how = f" ({guessed:,} of them simulated)"
        text += f" cost {'about ' if guessed else ''}{money_text(cost)}{how}"
        verdict, tone = _verdict(rows, cost)
        text += f"; {verdict}" if verdict else ""
    read = (
        f"{counted(log.files, 'file')}, {counted(log.records, 'record')}, {', '.join(log.formats)}"
    )
    return Headline(word, tone, text, f"{read}{_span(replay)}")


def _verdict(rows: Sequence[Row], cost: Decimal) -> tuple[str, str]:
    """What of the cost was for nothing, and its tone; nothing where no request could be judged."""
    if not any(row.judged for row in rows):
        return "", "plain"
    lost, wasted = lost_of(rows, avoidable=True), waste_of(rows)
    misses = sum(row.miss is not None and row.miss.avoidable is True for row in rows)
    parts = []
    if lost:
        parts.append(f"{money_text(lost)} in {counted(misses, 'avoidable miss')}")
    if wasted:
        parts.append(f"{money_text(wasted)} for history that was never cached")
    unknown = sum_of(
        row.miss.cost for row in rows if row.miss is not None and row.miss.avoidable is None
    )
    if unknown:
        parts.append(f"{money_text(unknown)} in misses of unknown cause")
    if not parts:
        return "nothing was lost to avoidable misses", "good"
    whole = sum((part or Decimal(0) for part in (lost, wasted, unknown)), Decimal(0))
    tone = "bad" if whole > cost / 10 else "warn"
    return f"{share_text(whole, cost)} of it was lost: {', '.join(parts)}", tone


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
        yield Line("Check", fidelity)
    yield from growth_rows(replay)


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
    guessed = [row for row in known if row.reported is None]
    if len(guessed) == len(known):
        paid = f"about {money_text(cost)} for the input (simulated)"
    elif guessed:
        paid = f"{money_text(cost)}, of it {money_text(_cost_of(guessed))} for input (simulated)"
    else:
        paid = f"{money_text(cost)} paid"
    parts = [paid, f"{money_text(bare)} without a cache"]
    bounded = [row for row in known if row.oracle is not None]
    if len(bounded) == len(known):
        best = money_text(sum_of(row.oracle for row in known))
        parts.append(f"{best} at best for these prompts (oracle)")
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
    text = f"the cache model reproduces {within:,} of {counted(compared, 'request')}"
    if kinds.count(Fidelity.WARMED):
        text += f"; {kinds.count(Fidelity.WARMED):,} warmed by calls outside the log"
    if kinds.count(Fidelity.PASSES):
        text += f"; {kinds.count(Fidelity.PASSES):,} of several passes (server tools)"
    return text


def _misses(rows: Sequence[Row]) -> Iterator[Part]:
    of_cause: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.miss is not None:
            of_cause[row.miss.cause, "miss"].append(row)
        if row.waste is not None:
            of_cause[row.waste.cause, "waste"].append(row)
    if not of_cause:
        return
    table = [_cause_row(name, kind, of_cause[name, kind]) for name, kind in of_cause]
    table.sort(key=lambda entry: (-entry[0], entry[1]))
    shown = tuple(cells for _, cells in table[:SHOWN_CAUSES])
    columns = ("cause", "kind", "requests", "tokens", "lost", "avoidable", "where")
    yield Table("Misses and waste", columns, shown)
    if len(table) > SHOWN_CAUSES:
        yield Notes("", (f"… and {counted(len(table) - SHOWN_CAUSES, 'more cause')}",))


def _lost(rows: Sequence[Row]) -> Decimal:
    return sum_of(row.miss.cost for row in rows if row.miss) or Decimal(0)


def _cause_row(name: str, kind: str, rows: Sequence[Row]) -> tuple[Decimal, tuple[str, ...]]:
    """A line of the table, with the money by which it is ranked."""
    found = [row.miss if kind == "miss" else row.waste for row in rows]
    known = [each for each in found if each is not None]
    tokens = [each.tokens for each in known if each.tokens is not None]
    cost = sum_of(each.cost for each in known)
    avoidable = {row.miss.avoidable for row in rows if row.miss} if kind == "miss" else {True}
    word = "partly" if len(avoidable) > 1 else AVOIDABLE[next(iter(avoidable))]
    numbers = ", ".join(f"{row.number}" for row in rows[:SHOWN_REQUESTS])
    more = ", …" if len(rows) > SHOWN_REQUESTS else ""
    cells = (
        name,
        kind,
        f"{len(rows):,}",
        tokens_text(sum(tokens) if tokens else None),
        money_text(cost),
        word,
        f"#{numbers}{more}",
    )
    return cost or Decimal(0), cells


AVOIDABLE = {True: "yes", False: "no", None: "unknown"}


def _advice_rows(replay: Replay, advice: Sequence[Advice], logs: Sequence[str]) -> Iterator[Line]:
    for place, item in enumerate(advice, start=1):
        yield Line("" if place > 1 else "To do", f"{place}. {item.what}", strong=True)
        word = "lost" if item.is_lost else "these cost"
        yield Line("", f"   {word} {money_text(item.cost)} · {item.why}")
        command = _command(replay, item, logs)
        if command:
            yield Line("", command, is_command=True)
    if len(advice) > 1:
        yield Line("", "The amounts overlap: replay again after each change.")


def _command(replay: Replay, item: Advice, logs: Sequence[str]) -> str:
    """What shows more, as it can be pasted; nothing where this report shows it."""
    pair = _pair_in_its_log(replay, item.pair, logs) if item.pair else None
    if pair is not None:
        return f"ctxdoc diagnose {shlex.quote(pair[0])} --pair {pair[1]},{pair[2]}"
    return f"ctxdoc explain {item.id}" if item.id in CAUSES else ""


def _pair_in_its_log(
    replay: Replay, pair: tuple[int, int], logs: Sequence[str]
) -> tuple[str, int, int] | None:
    """The log that holds both requests, and their numbers in it; None where it is standard input, or
    where they stand in two of several."""
    if len(logs) == 1:
        return None if logs[0] == "-" else (logs[0], *pair)
    sources = [replay.by_place[number - 1].request.source for number in pair]
    if sources[0] != sources[1] or sources[0] not in logs:
        return None
    inside = [row.number for row in replay.rows if row.request.source == sources[0]]
    return sources[0], inside.index(pair[0]) + 1, inside.index(pair[1]) + 1


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
    unused = unused_names(replay)
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
                ", ".join(sorted({short_model_id(row.request.model) or "-" for row in own})),
            )
        )
    columns = ("session", "parent", "requests", "cost", "lost", "first", "models")
    yield Table("Sessions", columns, tuple(rows))
    if len(sessions) > SHOWN_SESSIONS:
        more = counted(len(sessions) - SHOWN_SESSIONS, "more session")
        yield Notes("", (f"… and {more} (--format json lists all)",))


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
