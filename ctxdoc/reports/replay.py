"""The report of a replayed log: what it cost, how it grows, what was missed, what is dear, what to do."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.advice import Advice, advise, bridge_text
from ctxdoc.ledger.fidelity import Fidelity
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import Idle, Loss, Sum, Tokens, Totals, idle_of, losses_of, totals_of
from ctxdoc.outputs.numbers import counted, money_text, share_text, tokens_text
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Report, Table
from ctxdoc.outputs.report import Row as Line
from ctxdoc.providers.rules import short_model_id
from ctxdoc.replay.sessions import short_name
from ctxdoc.reports.blocks import kind_name, kinds_of, label_of, unused_names
from ctxdoc.reports.chart import chart_of
from ctxdoc.reports.growth import growth_rows
from ctxdoc.reports.json.replay import COMPARED, replay_json, replay_records
from ctxdoc.request.log import Skipped
from ctxdoc.request.usage import Origin
from ctxdoc.tokens.estimate import ERROR_SHARE

SHOWN_SESSIONS = 6
SHOWN_CAUSES = 8
SHOWN_BLOCKS = 8
SHOWN_SKIPPED = 5
SHOWN_REQUESTS = 4
SHOWN_NAMES = 4


def replay_report(
    replay: Ledger, *, excerpts: bool = True, logs: Sequence[str] = ("LOG",)
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
    replay: Ledger, advice: Sequence[Advice], excerpts: bool, logs: Sequence[str]
) -> Iterator[Part]:
    totals = totals_of(replay.rows)
    idle = idle_of(replay)
    yield _headline(replay, totals, idle)
    yield Fields(tuple(_main_rows(replay, totals, idle)))
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


def _headline(replay: Ledger, totals: Totals, idle: Idle | None) -> Headline:
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
    parts = []
    if totals.avoidable.amount:
        misses = counted(totals.avoidable.count, "avoidable miss")
        parts.append(f"{money_text(totals.avoidable.amount)} in {misses}")
    if totals.waste.amount:
        parts.append(f"{money_text(totals.waste.amount)} in waste")
    if totals.unknown.amount:
        parts.append(f"{money_text(totals.unknown.amount)} in misses of unknown cause")
    if parts:
        tone = "bad" if totals.wasted > cost / 10 else "warn"
        return f"{share_text(totals.wasted, cost)} of it was lost: {', '.join(parts)}", tone
    if totals.refused_by_shape:
        return f"{counted(totals.refused_by_shape, 'request')} would be refused by the API", "bad"
    if not totals.checked or totals.avoidable.amount is None:
        return "no miss could be checked", "plain"
    some = (
        "" if totals.checked == totals.requests else f" in the {totals.checked:,} that were checked"
    )
    return f"nothing was lost to avoidable misses{some}", "good"


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


def _main_rows(replay: Ledger, totals: Totals, idle: Idle | None) -> Iterator[Line]:
    rows = replay.rows
    for place, line in enumerate(_money(totals)):
        yield Line("" if place else "Money", line, strong=not place)
    if idle is not None:
        yield Line("Pauses", _idle(idle))
    for place, line in enumerate(_token_lines(rows, totals)):
        yield Line("" if place else "Tokens", line)
    merged = _merged(rows)
    if merged:
        yield Line("Records", merged)
    yield from _below(rows)
    yield from _accounting(rows, totals)
    fidelity = _fidelity(rows)
    if fidelity:
        yield Line("Check", fidelity)
    yield from growth_rows(replay)


def _money(totals: Totals) -> Iterator[str]:
    """The bill, and beside it what is simulated of requests without counters."""
    rest = _unpriced(totals)
    lines = []
    if totals.cost.amount is not None:
        of = _of(totals.cost) if totals.guessed_cost.amount is not None else ""
        paid = f"{money_text(totals.cost.amount)} paid{of}"
        lines.append(_bill(paid, totals.without_cache, totals.oracle))
    if totals.guessed_cost.amount is not None:
        of = _of(totals.guessed_cost) if lines else ""
        part = "" if totals.guessed_output else " for the input"
        paid = f"about {money_text(totals.guessed_cost.amount)}{part}{of} (simulated)"
        lines.append(_bill(paid, totals.guessed_without_cache, totals.guessed_oracle))
    yield from [f"{line}{rest if not place else ''}" for place, line in enumerate(lines)] or [
        f"-{rest}"
    ]
    for name, own in totals.own_prices:
        yield f"{name}: a price of our own table ({own.source}, {own.read:%Y-%m-%d}), not of genai-prices"


def _of(amount: Sum) -> str:
    without = "without counters" if amount.basis.simulated else "with counters"
    return f" by {counted(amount.basis.requests, 'request')} {without}"


def _bill(paid: str, without: Sum, oracle: Sum) -> str:
    best = "- at best (not every body was compared)"
    if oracle.amount is not None:
        best = f"{money_text(oracle.amount)} at best for these prompts (oracle)"
    return f"{paid} · {money_text(without.amount)} without a cache · {best}"


def _unpriced(totals: Totals) -> str:
    """What has no price, by name."""
    count = sum(requests for _, requests in totals.unpriced)
    if not count:
        return ""
    names = [f"{name}" for name, _ in totals.unpriced[:SHOWN_NAMES]]
    more = ", …" if len(totals.unpriced) > SHOWN_NAMES else ""
    return f"; {counted(count, 'request')} of unpriced models ({', '.join(names)}{more})"


def _idle(idle: Idle) -> str:
    """What was lost to pauses, and whether anything would have bridged them for less."""
    text = f"{money_text(idle.cost)} lost to {counted(idle.pauses, 'pause')} over the lifetime"
    if idle.longest:
        longest = money_text(idle.longest_cost)
        text += (
            f"; {longest} of it to {idle.longest:,} of an hour or more, which no lifetime bridges"
        )
    if idle.short:
        text += f"; for those of up to an hour {bridge_text(idle)}"
    return text


def _token_lines(rows: Sequence[RequestCost], totals: Totals) -> Iterator[str]:
    reported, simulated, every = totals.reported, totals.simulated, totals.every
    if reported is not None:
        without = totals.requests - reported.basis.requests
        rest = f"; {counted(without, 'request')} without counters" if without else ""
        yield f"{_tokens(reported)}; output {reported.output:,} (reported{rest})"
    if every is not None and every.basis.origin == "mixed":
        yield f"{_tokens(every)} (all that are known, {every.basis.simulated:,} simulated)"
    if simulated is not None:
        yield f"{_tokens(simulated)} ({_how(rows)})"
    if reported is None and simulated is None:
        yield "- (no request of the log has counters or a body)"


def _tokens(sums: Tokens) -> str:
    if sums.contradicted:
        who = counted(sums.contradicted, "request")
        who += " contradicts itself" if sums.contradicted == 1 else " contradict themselves"
        return (
            f"input - · read - (not known: {who}, as with more cached tokens than the prompt has)"
        )
    whole, written, hour = sums.input, sums.cache_write, sums.cache_write_1h
    parts = (
        f"read {share_text(sums.cache_read, whole)}",
        f"written {share_text(written, whole)}"
        + (f" (for an hour {share_text(hour, written)} of it)" if hour else ""),
        f"uncached {share_text(sums.uncached, whole)}",
    )
    return f"input {whole:,}: {' · '.join(parts)}"


def _merged(rows: Sequence[RequestCost]) -> str:
    """Records that told of one response, and responses that stand in the log again."""
    merged = [row.request.records for row in rows if row.request.records > 1]
    repeated = sum(row.repeated for row in rows)
    parts = []
    if merged:
        parts.append(f"{sum(merged):,} records of {counted(len(merged), 'response')} were merged")
    if repeated:
        verb = "repeats" if repeated == 1 else "repeat"
        parts.append(f"{counted(repeated, 'request')} {verb} a response that is counted once")
    return "; ".join(parts)


def _below(rows: Sequence[RequestCost]) -> Iterator[Line]:
    """Marked prefixes that are too short to be cached, with what they lack."""
    of_model: defaultdict[tuple[str, int], list[RequestCost]] = defaultdict(list)
    for row in rows:
        if row.below is not None and not row.repeated:
            of_model[short_model_id(row.request.model), row.below.minimum].append(row)
    for place, ((model, minimum), own) in enumerate(of_model.items()):
        missing = [row.below.missing for row in own if row.below]
        verb = "marks" if len(own) == 1 else "mark"
        least, most = min(missing), max(missing)
        lack = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        yield Line(
            "" if place else "Minimum",
            f"{counted(len(own), 'request')} {verb} a prefix that {model or 'the model'} does not cache: it "
            f"is {lack} tokens short of {minimum:,} ({_numbers(own)})",
        )


def _numbers(rows: Sequence[RequestCost]) -> str:
    numbers = ", ".join(f"{row.number}" for row in rows[:SHOWN_REQUESTS])
    return f"#{numbers}{', …' if len(rows) > SHOWN_REQUESTS else ''}"


def _how(rows: Sequence[RequestCost]) -> str:
    guessed = any(row.origin is Origin.ESTIMATED for row in rows if row.simulated)
    return f"simulated; sizes estimated, ±{ERROR_SHARE:.0%}" if guessed else "simulated"


def _accounting(rows: Sequence[RequestCost], totals: Totals) -> Iterator[Line]:
    """Faults in how the log counts or prices, with both sums of money."""
    kinds: defaultdict[str, list[RequestCost]] = defaultdict(list)
    for row in rows:
        if row.accounting is not None and not row.repeated:
            kinds[row.accounting.cause].append(row)
    for place, (name, own) in enumerate(kinds.items()):
        first = own[0].accounting
        sure = f" ({first.confidence})" if first is not None else ""
        text = f"{name}{sure}: {counted(len(own), 'request')}, the first #{own[0].number}"
        twice, right = totals.counted_twice, totals.corrected
        if name == "usage_double_counted" and twice.amount is not None:
            text += f"; {money_text(twice.amount)} as reported, {money_text(right.amount)} without the tokens "
            text += "that are counted twice"
        yield Line("" if place else "Counting", text)


def _fidelity(rows: Sequence[RequestCost]) -> str:
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


def _misses(rows: Sequence[RequestCost]) -> Iterator[Part]:
    losses = losses_of(rows)
    if not losses:
        return
    columns = ("cause", "kind", "requests", "tokens", "lost", "avoidable", "where")
    yield Table("Misses and waste", columns, tuple(map(_cells, losses[:SHOWN_CAUSES])))
    if len(losses) > SHOWN_CAUSES:
        yield Notes("", (f"… and {counted(len(losses) - SHOWN_CAUSES, 'more cause')}",))


def _cells(loss: Loss) -> tuple[str, ...]:
    return (
        loss.cause,
        loss.kind,
        f"{len(loss.rows):,}",
        tokens_text(loss.tokens),
        money_text(loss.cost),
        "partly" if loss.partly else AVOIDABLE[loss.avoidable],
        _numbers(loss.rows),
    )


AVOIDABLE = {True: "yes", False: "no", None: "unknown"}


def _advice_rows(replay: Ledger, advice: Sequence[Advice], logs: Sequence[str]) -> Iterator[Line]:
    for place, item in enumerate(advice, start=1):
        yield Line("" if place > 1 else "To do", f"{place}. {item.what}", strong=True)
        word = "lost" if item.is_lost else "these cost"
        yield Line("", f"   {word} {money_text(item.cost)} · {item.why}")
        command = _command(replay, item, logs)
        if command:
            yield Line("", command, is_command=True)
    if len(advice) > 1:
        yield Line("", "The amounts overlap: replay again after each change.")


def _command(replay: Ledger, item: Advice, logs: Sequence[str]) -> str:
    """What shows more, as it can be pasted; nothing where this report shows it."""
    pair = _pair_in_its_log(replay, item.pair, logs) if item.pair else None
    if pair is not None:
        return f"ctxdoc diagnose {shlex.quote(pair[0])} --pair {pair[1]},{pair[2]}"
    return f"ctxdoc explain {item.id}" if item.id in CAUSES else ""


def _pair_in_its_log(
    replay: Ledger, pair: tuple[int, int], logs: Sequence[str]
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


def _blocks(replay: Ledger, excerpts: bool) -> Iterator[Part]:
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


def _sessions(replay: Ledger) -> Iterator[Part]:
    sessions = replay.sessions
    if len(sessions) < 2:
        return
    totals = {s.id: totals_of(replay.rows_of(s)) for s in sessions}
    ranked = sorted(
        sessions, key=lambda s: (-(totals[s.id].priced.amount or Decimal(0)), s.requests[0])
    )
    rows = []
    for session in ranked[:SHOWN_SESSIONS]:
        own = replay.rows_of(session)
        start = own[0].request.at
        rows.append(
            (
                short_name(session.id),
                short_name(session.parent or "-"),
                f"{len(own):,}",
                money_text(totals[session.id].priced.amount),
                money_text(totals[session.id].lost.amount),
                start.strftime("%Y-%m-%d %H:%M") if start else "-",
                ", ".join(sorted({short_model_id(row.request.model) or "-" for row in own})),
            )
        )
    columns = ("session", "parent", "requests", "cost", "lost", "first", "models")
    yield Table("Sessions", columns, tuple(rows))
    if len(sessions) > SHOWN_SESSIONS:
        more = counted(len(sessions) - SHOWN_SESSIONS, "more session")
        yield Notes("", (f"… and {more} (--format json lists all)",))


def _not_judged(rows: Sequence[RequestCost]) -> Iterator[str]:
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
