"""What to do about a log, with the command that shows more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.advice import Advice
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.outputs.numbers import money_text
from ctxdoc.outputs.report import Row as Line


def advice_rows(replay: Ledger, advice: Sequence[Advice], logs: Sequence[str]) -> Iterator[Line]:
    """Steps to take, the dearest first, each with what it is worth."""
    for number, item in enumerate(advice, start=1):
        yield Line("" if number > 1 else "To do", f"{number}. {item.what}", strong=True)
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
    sources = [replay.by_index[number - 1].request.source for number in pair]
    if sources[0] != sources[1] or sources[0] not in logs:
        return None
    inside = [row.number for row in replay.rows if row.request.source == sources[0]]
    return sources[0], inside.index(pair[0]) + 1, inside.index(pair[1]) + 1
