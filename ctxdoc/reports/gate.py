"""The report of the gate: what held, what broke, where, why, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator, Sequence

from ctxdoc.gate.baseline import PrefixChange
from ctxdoc.gate.outcome import Breach, GateOutcome, Verdict
from ctxdoc.gate.surroundings import SURROUNDINGS
from ctxdoc.outputs.numbers import counted, money_text, tokens_text
from ctxdoc.outputs.printable import one_line
from ctxdoc.outputs.report import (
    Fields,
    Headline,
    Notes,
    Part,
    Report,
    Row,
    Table,
)
from ctxdoc.reports.excerpt import snippet_of
from ctxdoc.reports.gate_checks import gate_checks
from ctxdoc.reports.gate_words import invalidated_rows, summary_text, value_text, where_text
from ctxdoc.reports.json.gate import gate_json
from ctxdoc.reports.quoted import said

TONES = {Verdict.HELD: "good", Verdict.BROKEN: "bad", Verdict.UNCHECKED: "warn"}
SHOWN_REQUESTS = 8
TITLES = {each.id: each.title for each in SURROUNDINGS}


def gate_report(gated: GateOutcome, *, excerpts: bool = True, settings_file: str = "") -> Report:
    """The parts in the order in which a person reads them.

    `settings_file` is where the settings stand, for annotations that are of no file of their own.
    """
    return Report(
        make_parts=lambda: _parts(gated, excerpts),
        make_data=lambda: gate_json(gated, excerpts),
        make_checks=lambda: gate_checks(gated, excerpts, settings_file),
    )


def _parts(gated: GateOutcome, excerpts: bool) -> Iterator[Part]:
    yield Headline(
        str(gated.verdict).upper(), TONES[gated.verdict], summary_text(gated), gated.subject
    )
    for breach in gated.breaches:
        if breach.breaks:
            yield from _breach(breach, excerpts)
    for changed in gated.changed:
        yield _changed(changed, gated.baseline)
    yield _table(gated)
    told = [each for each in gated.breaches if not each.breaks]
    yield from _notes(
        "Told, and no limit", [_told(breach, excerpts, gated.allowed) for breach in told]
    )
    yield from _notes("Not checked, because", gated.not_checked)
    yield from _notes("More", list(_more(gated)))


def _notes(title: str, lines: Sequence[str]) -> Iterator[Part]:
    if lines:
        yield Notes(title, tuple(lines))


def _changed(changed: PrefixChange, baseline: str) -> Fields:
    lines = (Row("", one_line(line)) for line in changed.lines)
    lost = invalidated_rows(changed.invalidates)
    return Fields((Row("Baseline", baseline, strong=True), *lines, *lost))


def _breach(breach: Breach, excerpts: bool) -> Iterator[Part]:
    yield Fields((Row("Where", where_text(breach), strong=True),))
    if breach.difference is not None and excerpts:
        yield snippet_of(breach.difference)
    yield Fields(tuple(_breach_rows(breach, excerpts)))


def _breach_rows(breach: Breach, excerpts: bool) -> Iterator[Row]:
    cause = breach.cause
    yield Row("Cause", f"{cause.id} ({breach.confidence}): {cause.title}", strong=True)
    yield Row("", said(breach.explanation, excerpts))
    if breach.surroundings:
        yield Row("Changed", ", ".join(TITLES[name] for name in breach.surroundings))
    if breach.requests:
        yield Row("Requests", _requests(breach))
    if breach.cost is not None:
        yield Row("Money", f"{money_text(breach.cost)} lost")
    yield Row("Fix", breach.advice or cause.fix, strong=True)
    # Standard input cannot be read again.
    if breach.pair is not None and breach.source != "-":
        pair = f"{breach.pair[0]},{breach.pair[1]}"
        command = f"ctxdoc diagnose {shlex.quote(breach.source)} --pair {pair}"
        yield Row("", command, is_command=True)


def _requests(breach: Breach) -> str:
    shown = ", ".join(f"#{number}" for number in breach.requests[:SHOWN_REQUESTS])
    more = ", …" if len(breach.requests) > SHOWN_REQUESTS else ""
    lost = f", {tokens_text(breach.tokens)} tokens lost" if breach.tokens is not None else ""
    return f"{counted(len(breach.requests), 'request')}: {shown}{more}{lost}"


def _told(breach: Breach, excerpts: bool, allowed: Container[str]) -> str:
    about = _requests(breach) if breach.requests else ", ".join(breach.surroundings)
    how = f"--fail-on {breach.cause.id} breaks on it"
    if breach.cause.id in allowed:
        how = "allowed"
    return f"{breach.cause.id}: {about}. {said(breach.explanation, excerpts)} ({how})"


def _table(gated: GateOutcome) -> Table:
    return Table(
        title="",
        columns=("limit", "allowed", "found", "verdict", "where"),
        rows=tuple(
            (
                check.name,
                value_text(check.limit, check.unit),
                value_text(check.value, check.unit),
                str(check.verdict),
                one_line(check.why or check.where) or "-",
            )
            for check in gated.checks
        ),
    )


def _more(gated: GateOutcome) -> Iterator[str]:
    for name in dict.fromkeys(breach.cause.id for breach in gated.breaches if breach.breaks):
        yield f"ctxdoc explain {name}"
    if gated.changed:
        yield "if the change is meant: the same command with --update, and review the diff of the lock"
