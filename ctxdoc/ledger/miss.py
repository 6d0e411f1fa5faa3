"""What a request missed or wasted, judged from its case."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.case import TOLERANCE_TOKENS
from ctxdoc.diagnosis.causes import CAUSES, Case, Cause, Confidence, Group, Part
from ctxdoc.diagnosis.counter_proofs import Rewrite
from ctxdoc.diagnosis.drift import is_daily
from ctxdoc.diagnosis.find import Finding, find_causes
from ctxdoc.diagnosis.loss import bounded_loss, read_instead, wasted_tokens
from ctxdoc.ledger.request_cost import Accounting, BelowMinimum, Miss, RequestCost, Waste
from ctxdoc.pricing.cost import price
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.replay.measure import passed_often
from ctxdoc.request.request import Section
from ctxdoc.request.usage import Usage


def judge(row: RequestCost, case: Case) -> None:
    """What a request missed, or wastes."""
    if _is_plainly_healthy(case):
        return
    finding, also = find_causes(case)
    often = passed_often(case.after.request) or passed_often(case.before.request)
    if often and finding.cause.rests_on_one_pass:
        return
    if case.part is not Part.RECORD:
        # A second record of a response is counted nowhere: how it counts is no fault.
        row.accounting = _accounting_of((finding, *also))
    row.corrected = case.after.corrected
    if row.corrected is not None:
        row.corrected_cost = price(row.corrected, row.tariff)
    row.daily = finding.cause.is_clock and is_daily(case)
    if case.part in (Part.REFUSAL, Part.RECORD):
        row.miss = _missed(row, case, finding, also, None)
        return
    lost = bounded_loss(case)
    if lost > TOLERANCE_TOKENS:
        row.miss = _missed(row, case, finding, also, lost)
    elif not case.is_loss:
        # A loss within the tolerance is none, and no waste either: its tokens were cached.
        row.waste = _wasted(row, case, finding)


def _accounting_of(findings: Sequence[Finding]) -> Accounting | None:
    """The last fault of counting that was found."""
    faults = [each for each in findings if each.cause.group is Group.ACCOUNTING]
    if not faults:
        return None
    cause, match = faults[-1].cause, faults[-1].match
    return Accounting(cause=cause.id, confidence=match.confidence, explanation=match.explanation)


def _missed(
    row: RequestCost, case: Case, finding: Finding, also: Sequence[Finding], tokens: int | None
) -> Miss:
    """The miss of a finding; without tokens for a request that was billed nothing."""
    cause, match = finding.cause, finding.match
    return Miss(
        cause=cause.id,
        confidence=match.confidence,
        explanation=match.explanation + _beside(also, cause) + _api_text(case),
        tokens=tokens,
        cost=None if tokens is None else _saved(case.counters, tokens, row.tariff),
        avoidable=finding.avoidable and not _lasts_longer(case, cause),
        fix=match.fix,
    )


def _wasted(row: RequestCost, case: Case, finding: Finding) -> Waste | None:
    """What was paid in full and sent before, where something can be done about it."""
    cause = finding.cause
    if cause.group is Group.HEALTHY or not finding.avoidable:
        return None
    tokens = wasted_tokens(case, cause.id)
    if tokens is None:
        return None
    return Waste(
        cause=cause.id,
        explanation=finding.match.explanation,
        tokens=tokens,
        cost=_saved(case.counters, tokens, row.tariff),
    )


def _lasts_longer(case: Case, cause: Cause) -> bool:
    """Whether a longer lifetime would not have helped: there is none for the pause, or the prompt
    changed as well."""
    longer = (case.gap or 0) >= case.before.prefix.rule.rules.longest
    return cause.is_idle and (longer or case.divergence is not None)


def _beside(also: Sequence[Finding], cause: Cause) -> str:
    """What changed beside a pause: either alone would have lost the prefix."""
    names = [finding.cause.id for finding in also]
    return f" Also: {', '.join(names)}." if names and cause.is_idle else ""


def _api_text(case: Case) -> str:
    word = api_word(case)
    return f" The API says {word.reason}: {word.text}." if word is not None else ""


def _is_plainly_healthy(case: Case) -> bool:
    """Whether nothing is lost and no cause but the healthy ones could match: the history is marked,
    and no tracker wrote a cost down. Most requests of a log are so."""
    after, before = case.after, case.before.request
    if case.part is not Part.NOTHING or case.is_loss or after.double_counted:
        return False
    if before.response is not None and before.response.compacted:
        return False
    costs = (after.request.cost_reported, before.cost_reported)
    return costs == (None, None) and _is_history_marked(after.prefix)


def _is_history_marked(prefix: Prefix) -> bool:
    marks = prefix.breakpoints
    return bool(marks) and prefix.segments[marks[-1]].section is Section.MESSAGES


def miss_of(rewrite: Rewrite, usage: Usage, tariff: Tariff) -> Miss:
    """The miss that counters alone show."""
    return Miss(
        cause=rewrite.cause,
        confidence=rewrite.confidence,
        explanation=rewrite.explanation,
        tokens=rewrite.tokens,
        cost=_saved(usage, rewrite.tokens, tariff),
        avoidable=None
        if rewrite.confidence is Confidence.POSSIBLE
        else CAUSES[rewrite.cause].avoidable and not rewrite.lasting,
    )


def _saved(usage: Usage, tokens: int, tariff: Tariff) -> Decimal | None:
    """USD that a request would have cost less, had so many tokens been read."""
    paid, instead = price(usage, tariff), price(read_instead(usage, tokens), tariff)
    return None if paid is None or instead is None else paid - instead


def below_minimum_of(case: Case) -> BelowMinimum | None:
    """How much a marked prefix that nothing was cached of is too short by."""
    after, counters = case.after, case.counters
    marks = after.prefix.breakpoints
    if not marks or counters.cache_read or counters.cache_write or case.refusal is not None:
        return None
    tokens, minimum = after.sizes.at(marks[-1]), after.prefix.rule.minimum
    return BelowMinimum(tokens, minimum) if tokens < minimum else None
