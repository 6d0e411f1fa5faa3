"""A session at other prices: as batches, or with another model for some of its requests."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ctxdoc.errors import InputError
from ctxdoc.providers import find_model
from ctxdoc.simulation.history.messages import Call, Session

BATCHED = (
    "priced as message batches, at half of everything: a batch is done within a day and not in order, so that "
    "entries of 5 minutes are seldom read from one request to the next"
)
SUBAGENTS = "subagents"


def as_batches(session: Session) -> Session:
    """The session as message batches. What was billed is no part of it."""
    return _with_calls(
        session,
        lambda call: replace(call, tariff=replace(call.tariff, batch=True), reported=None),
        BATCHED,
    )


def with_model_for(session: Session, text: str) -> Session:
    """The session with another model for some requests, as in `subagents=claude-haiku-4-5`.

    Raises InputError for what is no such text, and where the session has no such requests.
    """
    who, equals, model = (part.strip() for part in text.partition("="))
    rule = find_model(model)
    if who != SUBAGENTS or not equals or not rule.known:
        raise InputError(
            f"--model-for '{text}' names no requests and a model",
            "write --model-for subagents=claude-haiku-4-5",
        )
    count = sum(call.is_subagent for call in session.calls)
    if not count:
        raise InputError(
            "--model-for subagents: the log has no session below another one", "leave it out"
        )
    told = (
        f"{count:,} requests of subagents are sent to {rule.id}, with the answers that were recorded and the "
        "sizes of the recorded model"
    )
    return _with_calls(
        session, lambda call: _of_model(call, model) if call.is_subagent else call, told
    )


def _of_model(call: Call, model: str) -> Call:
    rule = find_model(model)
    return replace(
        call,
        root=rule.id,
        rule=rule,
        tariff=replace(call.tariff, model=model),
        reported=None,
        request=replace(call.request, model=model) if call.request else None,
    )


def _with_calls(session: Session, change: Callable[[Call], Call], told: str) -> Session:
    return replace(
        session,
        calls=tuple(map(change, session.calls)),
        assumptions=(*session.assumptions, told),
    )
