"""The report of a diagnosis: verdict, place, cause, money and fix first, the steps behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.causes import Group
from ctxdoc.diagnosis.causes import Part as LossPart
from ctxdoc.diagnosis.diagnose import Diagnosis, State
from ctxdoc.diagnosis.evidence import duration_text
from ctxdoc.diagnosis.find import Finding
from ctxdoc.diagnosis.loss import wasted_tokens
from ctxdoc.outputs.numbers import money_text, tokens_text
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Report, Row, Table
from ctxdoc.prompt.diff import Difference
from ctxdoc.reports.excerpt import snippet_of
from ctxdoc.reports.json.diagnose import diagnosis_json
from ctxdoc.reports.quoted import said
from ctxdoc.request.request import Request, Section
from ctxdoc.request.usage import Origin

TONES = {
    State.ALIVE: "good",
    State.COLD: "plain",
    State.BELOW_MINIMUM: "warn",
    State.PARTIAL: "warn",
    State.DEAD: "bad",
    State.UNKNOWN: "warn",
}
SECTION_NAMES = {
    Section.TOOLS: "tool definitions",
    Section.SYSTEM: "system prompt",
    Section.MESSAGES: "messages",
    Section.MODEL: "model",
    Section.SETTINGS: "request settings",
}


def diagnosis_report(found: Diagnosis, *, excerpts: bool = True) -> Report:
    """The parts in the order in which a person reads them."""
    return Report(
        make_parts=lambda: _parts(found, excerpts),
        make_data=lambda: diagnosis_json(found, excerpts),
    )


def _parts(found: Diagnosis, excerpts: bool) -> Iterator[Part]:
    yield Headline(
        str(found.state).replace("_", " ").upper(),
        TONES[found.state],
        _verdict(found),
        _pair(found),
    )
    difference = found.first_difference if _shows_place(found) else None
    if difference is not None:
        yield from _place_parts(difference, excerpts)
    yield Fields(tuple(_main_rows(found, excerpts)))
    yield Fields(tuple(_step_rows(found)))
    if found.comparison is not None:
        yield _comparison_table(found)
        yield from _notes("What else changed", found.comparison.more)
    if not found.case.alone:
        yield Fields(tuple(_token_rows(found)))
    yield from _notes("Also true", [_finding_line(each, excerpts) for each in found.also])
    yield from _notes("Not checked, or assumed", found.notes)
    yield Notes("More", (f"ctxdoc explain {found.finding.cause.id}",))


def _notes(title: str, lines: Sequence[str]) -> Iterator[Part]:
    if lines:
        yield Notes(title, tuple(lines))


def _place_parts(difference: Difference, excerpts: bool) -> Iterator[Part]:
    byte = f", byte {difference.byte:,}" if difference.byte is not None else ""
    where = f"{difference.pointer}{byte} ({SECTION_NAMES[difference.section]})"
    yield Fields((Row("Where", where, strong=True),))
    if excerpts:
        yield snippet_of(difference)


def _shows_place(found: Diagnosis) -> bool:
    """Where nothing is wrong, a place would look like a fault."""
    return found.finding.cause.group is not Group.HEALTHY or found.case.is_loss


def _verdict(found: Diagnosis) -> str:
    case = found.case
    read, cached = case.counters.cache_read, case.cached
    by = "" if case.measured else " (simulated)"
    match found.state:
        case State.ALIVE:
            return f"the cache works: {read:,} tokens were read{by}"
        case State.PARTIAL:
            return f"only {read:,} of {cached:,} cached tokens were read{by}"
        case State.BELOW_MINIMUM:
            return "nothing can be cached: the prompt is shorter than the model's minimum"
        case State.COLD:
            return "nothing was there to be read: this is not a dead cache"
        case _ if case.part is LossPart.REFUSAL and case.refusal is None:
            return "the request failed: nothing was read or written"
        case State.DEAD if case.part is LossPart.REFUSAL:
            return "the API refuses this request"
        case State.DEAD if cached:
            return f"nothing of {cached:,} cached tokens was read{by}"
        case State.DEAD:
            return "nothing is ever cached"
        case _:
            return "the log does not tell"


def _pair(found: Diagnosis) -> str:
    before, after = found.case.before.request, found.case.after.request
    model = found.case.after.prefix.model or "no model"
    gap = f" · {duration_text(found.case.gap)} apart" if found.case.gap is not None else ""
    if found.case.alone:
        return f"{_name(after)} · {model}"
    chosen = f"\n{found.chosen}; --pair N,M shows another" if found.chosen else ""
    later = f":{after.line}" if after.source == before.source else _name(after)
    return f"{_name(before)} → {later} · {model}{gap}{chosen}"


def _name(request: Request) -> str:
    return f"{request.source}:{request.line}"


def _main_rows(found: Diagnosis, excerpts: bool) -> Iterator[Row]:
    cause, match = found.finding.cause, found.finding.match
    sure = "" if cause.group is Group.HEALTHY else f" ({match.confidence})"
    yield Row("Cause", f"{cause.id}{sure}: {cause.title}", strong=True)
    yield Row("", said(match.explanation, excerpts))
    word = api_word(found.case)
    if word is not None:
        sure = {True: "agrees", False: "disagrees", None: "open"}[word.agrees]
        yield Row("API says", f"{word.reason} ({sure}): {word.text}")
    yield Row("Money", _money(found))
    yield Row("Fix", found.finding.fix, strong=True)


def _money(found: Diagnosis) -> str:
    cost = found.cost
    if cost.paid is None:
        return "- (refused or repeated)" if found.lost is None else "- (this model is unpriced)"
    if cost.corrected is not None:
        right = money_text(cost.corrected)
        return f"{money_text(cost.paid)} as reported, {right} without the tokens that are counted twice"
    approximately = "" if found.cost_origin is Origin.REPORTED else f", {found.cost_origin}"
    if found.lost is None or not found.case.is_loss:
        paid = f"{money_text(cost.paid)} for this request{approximately}"
        again = _paid_again(found)
        if again:
            return f"{paid}; {again:,} tokens of it were sent before, and are paid again"
        return f"{paid}; nothing lost"
    return (
        f"{money_text(cost.lost)} lost on this request: {money_text(cost.paid)} paid, "
        f"{money_text(cost.if_hit)} had it been read{approximately}"
    )


def _paid_again(found: Diagnosis) -> int | None:
    """Tokens that were sent before and never cached, where something can be done about it."""
    if found.lost is None or not found.finding.avoidable:
        return None
    return wasted_tokens(found.case, found.finding.cause.id)


def _step_rows(found: Diagnosis) -> Iterator[Row]:
    case, usage = found.case, found.case.counters
    yield Row("Step 1", f"double send, {found.double_send.how}: {found.double_send.verdict}")
    if case.part is LossPart.REFUSAL:
        yield Row("Step 2", "counters: none, the request was refused")
    else:
        yield Row(
            "Step 2",
            f"counters, {case.origin}: read {usage.cache_read:,} · written {usage.cache_write:,} · "
            f"uncached {usage.uncached:,} · input {usage.input:,}",
        )
    if found.comparison is not None:
        text = "first differing byte by three comparisons:"
    elif case.alone:
        text = "not possible: there is one request only; give the one before it as well"
    elif case.divergence is None:
        text = "not needed: the later request only appends (--diff runs it all the same)"
    else:
        text = "not needed (--diff runs it all the same)"
    yield Row("Step 3", f"diff: {text}")


def _comparison_table(found: Diagnosis) -> Table:
    comparison = found.comparison
    assert comparison is not None
    return Table(
        title="",
        columns=("comparison", "byte", "what it says"),
        rows=(
            (
                "whole bodies, keys sorted",
                _byte(comparison.sorted_body_byte) if comparison.bodies_known else "-",
                "misleads: messages sort first, markers count",
            ),
            (
                "prompt, keys sorted",
                _byte(comparison.sorted_prompt_byte),
                "the first difference of content",
            ),
            (
                "prompt, as sent",
                _byte(comparison.prompt_byte),
                "the first byte that the cache sees",
            ),
        ),
    )


def _byte(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


def _token_rows(found: Diagnosis) -> Iterator[Row]:
    sizes = found.case.after.sizes
    yield Row(
        "Tokens",
        f"equal from the start in whole blocks {found.case.identical:,} ({sizes.origin}) · "
        f"survives {tokens_text(found.survives)} · lost {tokens_text(found.lost)} "
        f"({found.tokens_origin})",
    )


def _finding_line(finding: Finding, excerpts: bool) -> str:
    text = said(finding.match.explanation, excerpts)
    return f"{finding.cause.id} ({finding.match.confidence}): {text}"
