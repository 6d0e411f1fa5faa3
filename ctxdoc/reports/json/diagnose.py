"""The document `ctxdoc/diagnose/1`: keys in a fixed order, money as strings, unknown as null."""

from __future__ import annotations

from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.causes import Part as LossPart
from ctxdoc.diagnosis.diagnose import Comparison, Diagnosis, LiveSending
from ctxdoc.diagnosis.find import Finding
from ctxdoc.outputs.numbers import money_json
from ctxdoc.prompt.diff import Difference
from ctxdoc.reports.excerpt import excerpt
from ctxdoc.reports.quoted import said
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Request, Section
from ctxdoc.request.usage import Origin

SCHEMA = "ctxdoc/diagnose/1"


def diagnosis_json(found: Diagnosis, excerpts: bool = True) -> dict[str, Json]:
    """The document `ctxdoc/diagnose/1`; keys in a fixed order, money as strings."""
    case = found.case
    return {
        "schema": SCHEMA,
        "before": _request_json(case.before.request),
        "after": _request_json(case.after.request),
        "steps": {
            "double_send": {
                "how": found.double_send.how,
                "verdict": found.double_send.verdict,
                "sendings": [_sent_json(sent) for sent in found.double_send.sendings],
            },
            "counters": _counters_json(found),
            "diff": _comparison_json(found.comparison),
        },
        "cache": str(found.state),
        "cause": _finding_json(found.finding, excerpts),
        "also": [_finding_json(finding, excerpts) for finding in found.also],
        "first_difference": {
            **_place_json(found.first_difference, excerpts),
            "invalidates_from": str(found.invalidates_from),
        },
        "tokens": {
            "identical_prefix": case.identical,
            "survives": found.survives,
            "lost": found.lost,
            "origin": str(found.tokens_origin),
            "identical_prefix_origin": str(case.after.sizes.origin),
        },
        "cost": {
            "paid": money_json(found.cost.paid),
            "if_hit": money_json(found.cost.if_hit),
            "lost": money_json(found.cost.lost),
            "corrected": money_json(found.cost.corrected),
        },
        "not_checked": list(found.notes),
        "chosen": found.chosen or None,
        "api_reason": _word_json(found),
    }


def _counters_json(found: Diagnosis) -> Json:
    """What was read and written; a refused request has counted nothing, which is not 0."""
    names = ("cache_read", "cache_write", "uncached", "input")
    if found.case.part is LossPart.REFUSAL:
        return {"origin": str(Origin.NONE), **dict.fromkeys(names)}
    counters = found.case.counters
    return {"origin": str(found.case.origin), **{name: getattr(counters, name) for name in names}}


def _comparison_json(comparison: Comparison | None) -> Json:
    names = ("sorted_body_byte", "sorted_prompt_byte", "prompt_byte")
    return {
        "ran": comparison is not None,
        **{name: getattr(comparison, name, None) for name in names},
    }


def _place_json(difference: Difference | None, excerpts: bool) -> dict[str, Json]:
    """Where the requests first differ, with text of both sides if that is asked for."""
    names = ("section", "json_path", "byte", "before", "after")
    if difference is None:
        return {**dict.fromkeys(names), "section": str(Section.NONE)}
    return {
        "section": str(difference.section),
        "json_path": difference.pointer,
        "byte": difference.byte,
        "before": excerpt(difference.before, difference.byte) if excerpts else None,
        "after": excerpt(difference.after, difference.byte) if excerpts else None,
    }


def _sent_json(sent: LiveSending) -> Json:
    usage = sent.usage
    return {
        "cache_read": usage.cache_read if usage else None,
        "cache_write": usage.cache_write if usage else None,
        "uncached": usage.uncached if usage else None,
        "failure": sent.failure or None,
        "api_reason": sent.reason or None,
    }


def _word_json(found: Diagnosis) -> Json:
    word = api_word(found.case)
    return {"type": word.reason, "agrees": word.agrees, "text": word.text} if word else None


def _request_json(request: Request) -> dict[str, Json]:
    return {
        "source": request.source,
        "line": request.line,
        "id": request.id,
        "model": request.model or None,
        "at": request.at.isoformat() if request.at else None,
    }


def _finding_json(finding: Finding, excerpts: bool) -> dict[str, Json]:
    cause = finding.cause
    return {
        "id": cause.id,
        "title": cause.title,
        "group": str(cause.group),
        "confidence": str(finding.match.confidence),
        "explanation": said(finding.match.explanation, excerpts),
        "fix": finding.fix,
    }
