"""What may part two caches without anybody saying so: settings and headers beside the prompt.

Every member of a body that is not known to be neutral is compared before a miss is called the
provider's. Vendor pages say of none of these that it is a part of the prompt (facts 1.7, 8).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from ctxdoc.diagnosis.case import Case, Confidence
from ctxdoc.diagnosis.cause import capped
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Body, Request

MEMBERS = ("context_management", "inference_geo", "service_tier", "fallbacks", "container")
"""Members of a body that are read and are no known part of the prompt; of the container its skills
are one."""
NAMES = 4


def undocumented_changes(case: Case) -> tuple[str, ...]:
    """The names of what differs beside the prompt and is not known to be neutral."""
    one, two = case.before.request, case.after.request
    return (*_changed_members(one.body, two.body), *_changed_surroundings(one, two))


def _changed_members(one: Body | None, two: Body | None) -> Iterator[str]:
    if one is None or two is None:
        return
    yield from (name for name in MEMBERS if _differ(getattr(one, name), getattr(two, name)))
    for name in _changed_others(one, two)[:NAMES]:
        # A name is the log's own text: what is none may hold anything.
        yield name if name.isidentifier() else "a member of no name"


def _changed_others(one: Body, two: Body) -> list[str]:
    """The names of members that nobody knows, and that have other values."""
    before, after = dict(one.others), dict(two.others)
    names = sorted({*before, *after})
    missing = Raw(b"null")
    return [n for n in names if _differ(Raw(before.get(n, missing)), Raw(after.get(n, missing)))]


def _differ(one: Raw, two: Raw) -> bool:
    return _value(one) != _value(two)


def _value(raw: Raw) -> Json | bytes:
    try:
        return codec.plain(codec.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return bytes(raw)


def _changed_surroundings(one: Request, two: Request) -> Iterator[str]:
    answers = one.response, two.response
    if answers[0] is None or answers[1] is None:
        return
    if answers[0].batch != answers[1].batch:
        yield "the batch"
    if answers[0].us_only != answers[1].us_only:
        yield "the place of inference"
    versions = [request.headers.get("anthropic-version") for request in (one, two)]
    if all(versions) and versions[0] != versions[1]:
        yield "anthropic-version"


def both_of_a_batch(case: Case) -> bool:
    """Whether both requests are items of one batch, which run side by side."""
    answers = case.before.request.response, case.after.request.response
    return all(answer is not None and answer.batch for answer in answers) and case.gap == 0


def reach_text(case: Case) -> str:
    """From where to where a change of a setting whose reach depends on the model may be lost."""
    least = "the messages are cached under it at least; on some models tools and system prompt are too, and "
    least += "nobody says on which"
    if case.beyond_setting:
        return f"{least}: here more than the messages was lost, and nothing else changed"
    return least


def setting_proof(case: Case) -> Confidence:
    """How sure it is that such a setting is the cause: likely at most where more was lost than it must
    cost, or where something else that nobody documents changed beside it."""
    return capped(case.proof, Confidence.LIKELY) if case.beyond_setting else case.proof
