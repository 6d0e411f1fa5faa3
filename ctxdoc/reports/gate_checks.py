"""A gate as checks and annotations, for programs that show such."""

from __future__ import annotations

from collections.abc import Iterator

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.gate.baseline import PrefixChange
from ctxdoc.gate.outcome import Breach, Check, GateOutcome, Verdict
from ctxdoc.outputs.report import (
    Annotation,
    CheckResult,
    Checks,
    Rule,
)
from ctxdoc.reports.gate_words import invalidated_rows, summary_text, value_text, where_text
from ctxdoc.reports.quoted import said

BASELINE = Rule(
    id="baseline_changed",
    title="the stable prefix is not as the baseline has it",
    help="A session that runs while the new prefix is deployed reads nothing of the old one. If the change "
    "is meant, write the baseline anew with --update and review its diff.",
)


def gate_checks(gated: GateOutcome, excerpts: bool, settings_file: str) -> Checks:
    """Checks and annotations; `settings_file` is for those that are of no file of their own."""
    return Checks(
        verdict=str(gated.verdict),
        summary=summary_text(gated),
        tested=tuple(_tested(check, gated, excerpts) for check in gated.checks),
        annotations=tuple(_annotations(gated, excerpts, settings_file)),
    )


def _tested(check: Check, gated: GateOutcome, excerpts: bool) -> CheckResult:
    lines = [f"{check.title}: {check.why or _found(check)}"]
    if check.name == "baseline":
        lines += [line for changed in gated.changed for line in changed.lines]
    elif check.limit == 0 and not check.why:
        # A limit of 0 is broken by findings: each of them is told.
        lines += _breaking(gated, excerpts)
    return CheckResult(name=check.name, verdict=str(check.verdict), text="\n".join(lines))


def _breaking(gated: GateOutcome, excerpts: bool) -> Iterator[str]:
    for breach in gated.breaches:
        if breach.breaks:
            why = said(breach.explanation, excerpts)
            yield f"{where_text(breach)}: {breach.cause.id}: {why}"


def _found(check: Check) -> str:
    return f"found {value_text(check.value, check.unit)}, allowed {value_text(check.limit, check.unit)}"


def _annotations(gated: GateOutcome, excerpts: bool, settings_file: str) -> Iterator[Annotation]:
    for breach in gated.breaches:
        yield _of_breach(breach, excerpts, settings_file)
    for changed in gated.changed:
        yield _of_baseline(changed, gated.baseline)
    for check in gated.checks:
        # A limit of 0 is broken by findings, each of which has an annotation of its own.
        if check.verdict is Verdict.UNCHECKED or (
            check.verdict is Verdict.BROKEN and check.limit != 0
        ):
            yield _of_check(check, settings_file)


def _of_breach(breach: Breach, excerpts: bool, settings_file: str) -> Annotation:
    is_file = breach.line is not None and breach.source != "-"
    why, fix = said(breach.explanation, excerpts), breach.advice or breach.cause.fix
    return Annotation(
        rule=_rule(breach),
        level="error" if breach.breaks else "note",
        message=f"{where_text(breach)}: {why}\n{fix}",
        file=breach.source if is_file else settings_file,
        line=breach.line or 1,
    )


def _of_baseline(changed: PrefixChange, file: str) -> Annotation:
    lost = "".join(row.text for row in invalidated_rows(changed.invalidates))
    return Annotation(
        rule=BASELINE,
        level="error",
        message="\n".join(filter(None, (*changed.lines, lost))),
        file=file,
    )


def _of_check(check: Check, settings_file: str) -> Annotation:
    return Annotation(
        rule=Rule(id=check.name, title=check.title, help=f"{check.title}, in {check.unit}."),
        level="error" if check.verdict is Verdict.BROKEN else "warning",
        message=f"{check.title}: {check.why or _found(check)} {check.where}".strip(),
        file=settings_file,
    )


def _rule(breach: Breach) -> Rule:
    cause = breach.cause
    return Rule(
        id=cause.id, title=cause.title, help=f"{CAUSES.page(cause.id).strip()}\n\n{cause.fix}"
    )
