"""Step 1 of a diagnosis, live: the recorded request sent twice, and what both answers prove.

The anthropic SDK sends; it reads the key from the environment, and ctxdoc never sees it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.api_word import word_of
from ctxdoc.diagnosis.case import TOLERANCE_SHARE, TOLERANCE_TOKENS, Case
from ctxdoc.diagnosis.diagnose import DoubleSend, LiveSending
from ctxdoc.errors import InputError
from ctxdoc.pricing.cost import price, whole_sum_of
from ctxdoc.pricing.tariff import tariff_of
from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import ERROR_SHARE

PAUSE = 5.0
"""Seconds before the third sending: what was written is readable by then."""
LEFT_OUT = ("stream",)
MOST_SENDINGS = 3


class Client(Protocol):
    """What of the SDK's client is used."""

    def post(self, path: str, *, cast_to: Any, body: object, options: Any) -> Any:
        """Sends a body and returns what came back."""


class Plan(Struct, frozen=True, kw_only=True):
    """What would be sent, and the most that it can cost."""

    body: dict[str, Any]
    before: dict[str, Any] | None
    """The earlier request, where the API is asked what changed since."""
    beta: str
    """The recorded `anthropic-beta` header."""
    tokens: int
    """Of the prompt, by the ledger."""
    count: int
    """Sendings at most."""
    longest: int
    """Tokens of the longest answer that may come."""
    most: Decimal | None
    """USD for all sendings, if each writes everything; None where the model has no price."""


def plan_of(case: Case, *, diagnostics: bool = False) -> Plan:
    """The later request as it would be sent again, with an answer as short as it allows.

    Raises InputError for a log that does not hold the whole body.
    """
    request = case.after.request
    body = _shortened(_sent_body(request))
    before = None
    if diagnostics or "diagnostics" in body:
        body["diagnostics"] = dict(NO_MESSAGE)
        earlier = case.before.request.raw
        if not case.alone and earlier is not None:
            before = _shortened({**msgspec.json.decode(earlier), "diagnostics": dict(NO_MESSAGE)})
    prices = [_most(case.after, body)] * MOST_SENDINGS
    if before is not None:
        prices.append(_most(case.before, before))
    return Plan(
        body=body,
        before=before,
        beta=request.headers.get("anthropic-beta", ""),
        tokens=case.after.sizes.total,
        count=len(prices),
        longest=max(body["max_tokens"], before["max_tokens"] if before else 0),
        most=whole_sum_of(prices),
    )


NO_MESSAGE = {"previous_message_id": None}
"""Asks for the API's word on a miss, beside no message."""


def _sent_body(request: Request) -> dict[str, Any]:
    """The body as it was sent; raises InputError for one that the log does not hold, or that is none."""
    if request.raw is None:
        raise InputError(
            "--live needs the body as it was sent, and the log does not hold it",
            "record one: ctxdoc record -- python agent.py",
        )
    found = msgspec.json.decode(request.raw)
    if not isinstance(found, dict):
        raise InputError("--live: the body is no object", "record one: ctxdoc record")
    if not isinstance(found.get("model"), str):
        raise InputError(
            "--live: the body names no model", "only the Claude API's own form is sent"
        )
    return found


def _shortened(found: Mapping[str, Any]) -> dict[str, Any]:
    """A body that asks for the shortest answer, without what is no part of the prompt."""
    body = {name: value for name, value in found.items() if name not in LEFT_OUT}
    body["max_tokens"] = _least_answer(body)
    return body


def _least_answer(body: Mapping[str, Any]) -> int:
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and isinstance(thinking.get("budget_tokens"), int):
        # An answer has to be longer than its thinking; the budget is a part of the prompt.
        return int(thinking["budget_tokens"]) + 1
    return 1


def _most(exchange: MeasuredRequest, body: Mapping[str, Any]) -> Decimal | None:
    """USD for one sending that writes everything; where the size is an estimate, at the end of its band."""
    sizes = exchange.sizes
    wide = 1 + ERROR_SHARE if sizes.origin is Origin.ESTIMATED else 1
    tokens = math.ceil(sizes.total * wide)
    hour = any(mark.ttl == "1h" for mark in exchange.prefix.marks)
    written = Usage(
        uncached=0,
        cache_read=0,
        cache_write_5m=0 if hour else tokens,
        cache_write_1h=tokens if hour else 0,
        output=body["max_tokens"],
    )
    tariff = replace(tariff_of(exchange.request), batch=False, model=str(body["model"]))
    return price(written, tariff)


def send_twice(
    plan: Plan, case: Case, client: Client, *, sleep: Callable[[float], None] = time.sleep
) -> DoubleSend:
    """Sends the request twice, and once more after a pause when the second did not read what the first
    had cached; says what that proves."""
    started, before = time.monotonic(), ""
    if plan.before is not None:
        earlier = _send(replace(plan, body=plan.before), client, "")
        if earlier.usage is None:
            return DoubleSend("live", f"not proved: {earlier.failure}", (earlier,))
        before = earlier.id
    first = _send(plan, client, before)
    if first.usage is None:
        return DoubleSend("live", f"not proved: {first.failure}", (first,))
    second = _send(plan, client, first.id)
    if second.usage is None:
        return DoubleSend("live", f"not proved: {second.failure}", (first, second))
    held = first.usage.cache_read + first.usage.cache_write
    if not held:
        return DoubleSend("live", _never(case) + _word_text(case, first), (first, second))
    began = _recorded_text(case, first) + _word_text(case, first)
    if _reads(second.usage, held):
        text = f"the cache works for this request: {_read_text(second.usage)}{began}"
        return DoubleSend("live", text, (first, second))
    apart = time.monotonic() - started
    sleep(PAUSE)
    third = _send(plan, client, second.id)
    sent = (first, second, third)
    if third.usage is None:
        return DoubleSend("live", f"not proved: {third.failure}", sent)
    if _reads(third.usage, held):
        text = (
            f"the cache works, a moment later: the second sending read {second.usage.cache_read:,} of "
            f"{held:,} cached tokens, the third {third.usage.cache_read:,}; what was written was not "
            f"readable yet, or another place answered{began}"
        )
        return DoubleSend("live", text, sent)
    text = (
        f"written but not read: {held:,} tokens were cached, and of the same bytes the second sending, "
        f"{apart:.0f} s later, read {second.usage.cache_read:,} and the third "
        f"{third.usage.cache_read:,}; the request is not at fault, the place that answers is{began}"
    )
    return DoubleSend("live", text, sent)


def _send(plan: Plan, client: Client, before: str) -> LiveSending:
    """One sending; what fails is told and not raised."""
    import anthropic

    body = dict(plan.body)
    if "diagnostics" in body:
        body["diagnostics"] = {"previous_message_id": before or None}
    headers = {"anthropic-beta": plan.beta} if plan.beta else {}
    try:
        answer = client.post(
            "/v1/messages", cast_to=object, body=body, options={"headers": headers}
        )
        response = response_of(answer)
    except anthropic.APIStatusError as error:
        return LiveSending(usage=None, failure=_failure(error))
    except anthropic.APIConnectionError as error:
        return LiveSending(usage=None, failure=f"the API was not reached ({type(error).__name__})")
    except (msgspec.ValidationError, AttributeError, TypeError):
        return LiveSending(usage=None, failure="the answer is none of the Messages API")
    if response.usage is None:
        return LiveSending(usage=None, failure="the answer has no counters", id=response.id)
    return LiveSending(usage=response.usage, reason=response.miss_reason, id=response.id)


def _failure(error: Any) -> str:
    """What an error of the API means, without its text: that may repeat a part of the request."""
    status = error.status_code
    wait = error.response.headers.get("retry-after", "")
    later = f"; it asks to wait {wait} s" if wait.isdigit() else ""
    said = {
        400: "the API refuses the request (400)",
        401: "the key is not valid (401): set ANTHROPIC_API_KEY",
        403: "the key may not do this (403)",
        404: "the API does not know the model or the path (404)",
        413: "the request is too large (413)",
        429: f"the rate limit is reached (429){later}",
        529: f"the API is overloaded (529){later}",
    }
    return said.get(status, f"the API answered with status {status}{later}")


def _reads(usage: Usage, held: int) -> bool:
    return usage.cache_read >= held - max(TOLERANCE_TOKENS, TOLERANCE_SHARE * held)


def _read_text(usage: Usage) -> str:
    return f"sent again at once it read {usage.cache_read:,} of {usage.input:,} tokens"


def _never(case: Case) -> str:
    prefix, sizes = case.after.prefix, case.after.sizes
    if not prefix.breakpoints:
        return "never written: the request has no breakpoint"
    marked = sizes.at(prefix.breakpoints[-1])
    if marked < prefix.rule.minimum:
        return (
            f"never written: the marked prefix of about {marked:,} tokens is below the model's minimum of "
            f"{prefix.rule.minimum:,}"
        )
    return "never written: neither sending wrote or read anything, though a breakpoint is there"


def _word_text(case: Case, first: LiveSending) -> str:
    """What the API says of the earlier request and this one."""
    if not first.reason:
        return ""
    word = word_of(first.reason, case)
    sure = {True: "agrees", False: "disagrees", None: "open"}[word.agrees]
    return f"; the API says {word.reason} ({sure}): {word.text}"


def _recorded_text(case: Case, first: LiveSending) -> str:
    """What became of the entries that the recorded request had."""
    usage, request = case.after.usage, case.after.request
    if usage is None or first.usage is None or not usage.cache_read + usage.cache_write:
        return ""
    if first.usage.cache_read:
        return ""
    age = (datetime.now(UTC) - request.at).total_seconds() if request.at else None
    rules = case.after.prefix.rule.rules
    lives = rules.longest if usage.cache_write_1h else rules.shortest
    if age is not None and age < lives:
        return (
            "; the entries of the recorded request should be there and are not: another key, workspace or "
            "place answers"
        )
    return "; the entries of the recorded request have expired by now"
