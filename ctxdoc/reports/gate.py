"""The report of the gate: what held, what broke, where, why, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator
from decimal import Decimal

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.gate.checks import STABLE, Breach, Check, GateOutcome, Verdict
from ctxdoc.gate.limits import Value
from ctxdoc.gate.surroundings import SURROUNDINGS
from ctxdoc.outputs.numbers import counted, money_json, money_text, tokens_text
from ctxdoc.outputs.printable import one_line
from ctxdoc.outputs.report import (
    Annotation,
    CheckResult,
    Checks,
    Fields,
    Headline,
    Notes,
    Part,
    Report,
    Row,
    Rule,
    Table,
)
from ctxdoc.reports.diagnose import said
from ctxdoc.reports.excerpt import excerpt, snippet_of
from ctxdoc.request.codec import Json

SCHEMA = "ctxdoc/gate/1"
TONES = {Verdict.HELD: "good", Verdict.BROKEN: "bad", Verdict.UNCHECKED: "warn"}
SHOWN_REQUESTS = 8
UNITS = {"requests": "request", "surroundings": "surrounding", "prefixes": "prefix"}
TITLES = {each.id: each.title for each in SURROUNDINGS}
BASELINE = Rule(
    id="baseline_changed",
    title="the stable prefix is not as the baseline has it",
    help="A session that runs while the new prefix is deployed reads nothing of the old one. If the change "
    "is meant, write the baseline anew with --update and review its diff.",
)


def gate_report(gated: GateOutcome, *, excerpts: bool = True, settings_file: str = "") -> Report:
    """The parts in the order in which a person reads them.

    `settings_file` is where the settings stand, for annotations that are of no file of their own.
    """
    return Report(
        parts=tuple(_parts(gated, excerpts)),
        make_data=lambda: gate_json(gated, excerpts),
        make_checks=lambda: _checks(gated, excerpts, settings_file),
    )


def _parts(gated: GateOutcome, excerpts: bool) -> Iterator[Part]:
    yield Headline(str(gated.verdict).upper(), TONES[gated.verdict], _summary(gated), gated.subject)
    for breach in gated.breaches:
        if breach.breaks:
            yield from _breach(breach, excerpts)
    for changed in gated.changed:
        yield Fields(
            (
                Row("Baseline", gated.baseline, strong=True),
                *(Row("", one_line(line)) for line in changed.lines),
                *_invalidated(changed.invalidates),
            )
        )
    yield _table(gated)
    told = [breach for breach in gated.breaches if not breach.breaks]
    if told:
        yield Notes(
            "Told, and no limit", tuple(_told(breach, excerpts, gated.allowed) for breach in told)
        )
    if gated.not_checked:
        yield Notes("Not checked, because", gated.not_checked)
    more = tuple(_more(gated))
    if more:
        yield Notes("More", more)


def _summary(gated: GateOutcome) -> str:
    broken = [check for check in gated.checks if check.verdict is Verdict.BROKEN]
    unchecked = [check for check in gated.checks if check.verdict is Verdict.UNCHECKED]
    if broken:
        causes = dict.fromkeys(each.cause.id for each in gated.breaches if each.breaks)
        names = [
            f"{check.name} ({', '.join(causes)})" if check.name == STABLE else check.name
            for check in broken
        ]
        return f"{len(broken)} of {counted(len(gated.checks), 'limit')} broken: {', '.join(names)}"
    if unchecked:
        return f"{unchecked[0].name} could not be checked: {unchecked[0].why}"
    written = f"; {gated.baseline} is written" if gated.updated else ""
    return f"{counted(len(gated.checks), 'limit')} held{written}"


def _breach(breach: Breach, excerpts: bool) -> Iterator[Part]:
    yield Fields((Row("Where", _where(breach), strong=True),))
    if breach.place is not None and excerpts:
        yield snippet_of(breach.place)
    cause = breach.cause
    rows = [
        Row("Cause", f"{cause.id} ({breach.confidence}): {cause.title}", strong=True),
        Row("", said(breach.explanation, excerpts)),
    ]
    if breach.surroundings:
        names = ", ".join(TITLES[name] for name in breach.surroundings)
        rows.append(Row("Changed", names))
    if breach.requests:
        rows.append(Row("Requests", _requests(breach)))
    if breach.cost is not None:
        rows.append(Row("Money", f"{money_text(breach.cost)} lost"))
    rows.append(Row("Fix", breach.advice or cause.fix, strong=True))
    if breach.pair is not None and breach.source != "-":
        pair = f"{breach.pair[0]},{breach.pair[1]}"
        command = f"ctxdoc diagnose {shlex.quote(breach.source)} --pair {pair}"
        rows.append(Row("", command, is_command=True))
    yield Fields(tuple(rows))


def _where(breach: Breach) -> str:
    line = f":{breach.line}" if breach.line else ""
    place = breach.place
    if place is None:
        return one_line(f"{breach.source}{line}")
    byte = f", byte {place.byte:,}" if place.byte is not None else ""
    return one_line(f"{breach.source}{line} {place.pointer}{byte}")


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


def _invalidated(tokens: int | None) -> Iterator[Row]:
    if tokens is not None:
        yield Row(
            "",
            f"invalidates about {tokens:,} cached tokens of prefix (estimated), and the history behind "
            "them, for each session that runs when it is deployed",
        )


def _table(gated: GateOutcome) -> Table:
    return Table(
        title="",
        columns=("limit", "allowed", "found", "verdict", "where"),
        rows=tuple(
            (
                check.name,
                _value(check.limit, check.unit),
                _value(check.value, check.unit),
                str(check.verdict),
                one_line(check.why or check.where) or "-",
            )
            for check in gated.checks
        ),
    )


def _value(value: Value | None, unit: str) -> str:
    if value is None:
        return "-"
    match unit:
        case "share":
            return f"{float(value):.1%}"
        case "USD":
            return money_text(Decimal(str(value)))
        case "tokens":
            return f"{int(value):,} tokens"
        case _:
            return counted(int(value), UNITS.get(unit, unit))


def _more(gated: GateOutcome) -> Iterator[str]:
    for name in dict.fromkeys(breach.cause.id for breach in gated.breaches if breach.breaks):
        yield f"ctxdoc explain {name}"
    if gated.changed:
        yield "if the change is meant: the same command with --update, and review the diff of the lock"


def gate_json(gated: GateOutcome, excerpts: bool = True) -> dict[str, Json]:
    """The document `ctxdoc/gate/1`."""
    return {
        "schema": SCHEMA,
        "verdict": str(gated.verdict),
        "subject": gated.subject,
        "limits": [_check_json(check) for check in gated.checks],
        "findings": [_breach_json(breach, excerpts) for breach in gated.breaches],
        "baseline": {
            "path": gated.baseline or None,
            "updated": gated.updated,
            "changes": [
                {"lines": list(changed.lines), "invalidated_tokens": changed.invalidates}
                for changed in gated.changed
            ],
        },
        "not_checked": list(gated.not_checked),
    }


def _check_json(check: Check) -> Json:
    return {
        "name": check.name,
        "unit": check.unit,
        "limit": _number(check.limit),
        "value": _number(check.value),
        "verdict": str(check.verdict),
        "where": check.where or None,
        "why": check.why or None,
    }


def _number(value: Value | None) -> Json:
    """Whole numbers as such, shares and money as decimal strings."""
    if value is None or isinstance(value, int):
        return value
    return money_json(Decimal(str(value)).quantize(Decimal("0.000001")))


def _breach_json(breach: Breach, excerpts: bool) -> Json:
    place = breach.place
    return {
        "cause": breach.cause.id,
        "title": breach.cause.title,
        "confidence": str(breach.confidence),
        "breaks": breach.breaks,
        "explanation": said(breach.explanation, excerpts),
        "fix": breach.advice or breach.cause.fix,
        "source": breach.source,
        "line": breach.line,
        "json_path": place.pointer if place else None,
        "byte": place.byte if place else None,
        "before": excerpt(place.before, place.byte) if place and excerpts else None,
        "after": excerpt(place.after, place.byte) if place and excerpts else None,
        "requests": list(breach.requests),
        "surroundings": list(breach.surroundings),
        "lost_tokens": breach.tokens,
        "lost_cost": money_json(breach.cost),
    }


def _checks(gated: GateOutcome, excerpts: bool, settings_file: str) -> Checks:
    return Checks(
        verdict=str(gated.verdict),
        summary=_summary(gated),
        tested=tuple(_tested(check, gated, excerpts) for check in gated.checks),
        annotations=tuple(_annotations(gated, excerpts, settings_file)),
    )


def _tested(check: Check, gated: GateOutcome, excerpts: bool) -> CheckResult:
    lines = [f"{check.title}: {check.why or _found(check)}"]
    if check.name == "baseline":
        lines += [line for changed in gated.changed for line in changed.lines]
    elif check.limit == 0 and not check.why:
        lines += [
            f"{_where(breach)}: {breach.cause.id}: {said(breach.explanation, excerpts)}"
            for breach in gated.breaches
            if breach.breaks
        ]
    return CheckResult(name=check.name, verdict=str(check.verdict), text="\n".join(lines))


def _found(check: Check) -> str:
    return f"found {_value(check.value, check.unit)}, allowed {_value(check.limit, check.unit)}"


def _annotations(gated: GateOutcome, excerpts: bool, settings_file: str) -> Iterator[Annotation]:
    for breach in gated.breaches:
        is_file = breach.line is not None and breach.source != "-"
        level = "error" if breach.breaks else "note"
        text = f"{_where(breach)}: {said(breach.explanation, excerpts)}\n{breach.advice or breach.cause.fix}"
        yield Annotation(
            rule=_rule(breach),
            level=level,
            message=text,
            file=breach.source if is_file else settings_file,
            line=breach.line or 1,
        )
    for changed in gated.changed:
        lost = "".join(row.text for row in _invalidated(changed.invalidates))
        yield Annotation(
            rule=BASELINE,
            level="error",
            message="\n".join(filter(None, (*changed.lines, lost))),
            file=gated.baseline,
        )
    for check in gated.checks:
        told = check.verdict is Verdict.BROKEN and check.limit != 0
        if told or check.verdict is Verdict.UNCHECKED:
            yield Annotation(
                rule=Rule(
                    id=check.name, title=check.title, help=f"{check.title}, in {check.unit}."
                ),
                level="error" if told else "warning",
                message=f"{check.title}: {check.why or _found(check)} {check.where}".strip(),
                file=settings_file,
            )


def _rule(breach: Breach) -> Rule:
    cause = breach.cause
    return Rule(
        id=cause.id, title=cause.title, help=f"{CAUSES.page(cause.id).strip()}\n\n{cause.fix}"
    )
