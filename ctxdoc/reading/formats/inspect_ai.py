"""Inspect's evaluation logs: `.json`, or `.eval` archives with one member a sample.

How to get one
    `inspect eval` writes them to `logs/`. `--log-model-api` (in newer versions; older ones always
    do) keeps the calls as they were sent; without it the counters are left.

What a record holds
    Events of samples: for each call of a model its request and response as values, with time,
    counters and sample. Long texts stand aside as attachments and are put back. The place of a
    record is the number of its event in the file.

What it cannot tell
    The bytes as sent, as Inspect keeps parsed values: a change of their spelling is not seen. Answers
    from Inspect's own cache reached no provider and are skipped.

Privacy
    The bodies are your prompts; attachments hold images and files of the samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import UNREADABLE, Format, Item, between, read_time, text_of
from ctxdoc.reading.formats.shared import tracked_usage
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.reading.formats.shared.wire import HttpExchange, answered
from ctxdoc.reading.source import Document, Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.response import Response

ATTACHMENT = "attachment://"
MAX_REQUEST = 32 << 20
"""Characters of a request with its attachments: the API refuses more."""
MAX_RESOLVED = 512 << 20
"""Characters of all requests of a file: an attachment may be named many times."""
VALUE = 16
"""What a value counts for beside its characters."""
SAMPLE = ("epoch", "input", "target")
Values = Mapping[str, Any]


class _Pools(Struct):
    calls: list[Any] = []


class _Transcript(Struct):
    events: list[Raw] = []
    content: dict[str, str] = {}


class _Sample(Struct):
    """A sample; `transcript` is how older versions keep the events."""

    id: Any = None
    epoch: Any = None
    uuid: Any = None
    events: list[Raw] | None = None
    attachments: dict[str, str] | None = None
    events_data: _Pools | None = None
    transcript: _Transcript | None = None

    @property
    def all_events(self) -> list[Raw]:
        """The events, where either version keeps them."""
        old = self.transcript.events if self.transcript else []
        return old if self.events is None else self.events

    @property
    def session(self) -> str:
        """A sample is one conversation."""
        return text_of(self.uuid) or f"sample {self.id} epoch {self.epoch}"


class _Log(Struct):
    samples: list[Raw] | None = None


class _Event(Struct):
    event: str = ""
    model: str = ""
    timestamp: Any = None
    completed: Any = None
    pending: Any = None
    cache: Any = None
    error: Any = None
    output: Any = None
    call: Any = None


def _matches(source: Source) -> bool:
    return source.has("eval.task", "eval.model") or source.has(*SAMPLE)


def _read(source: Source) -> Iterator[Item]:
    number, budget = 0, _Budget()
    for document in source.documents():
        if isinstance(document, Skipped):
            yield document
            continue
        for item in _read_document(document, number, budget):
            number += 1
            yield item


def _read_document(document: Document, before: int, budget: _Budget) -> Iterator[Item]:
    """The events of a whole log or of one sample, numbered from `before`."""
    place = Document(document.source, before + 1, b"")
    try:
        samples = _samples(document)
    except UNREADABLE as error:
        yield Skipped(place.source, place.line, reason_of(error))
        return
    if not samples:
        yield Skipped(
            place.source, place.line, "a log's head or summary: it holds no events", other=True
        )
    for raw in samples:
        for item in _read_sample(place, raw, budget):
            place = Document(place.source, place.line + 1, b"")
            yield item


def _samples(document: Document) -> list[Raw]:
    """The samples of a log, or the one that a member of an archive is; none in its other members."""
    samples = msgspec.json.decode(document.data, type=_Log).samples
    # A whole log has a list of them; a member of an archive is one.
    if samples is not None:
        return samples
    sample = msgspec.json.decode(document.data, type=_Sample)
    return [Raw(document.data)] if sample.events is not None or sample.transcript else []


def _read_sample(place: Document, raw: Raw, budget: _Budget) -> Iterator[Item]:
    try:
        sample = msgspec.json.decode(raw, type=_Sample)
    except UNREADABLE as error:
        yield Skipped(place.source, place.line, f"sample not read: {reason_of(error)}")
        return
    kept = _Resolver(sample, budget)
    if not sample.all_events:
        yield Skipped(place.source, place.line, "a sample without events", other=True)
    for number, event in enumerate(sample.all_events, start=place.line):
        at = Document(place.source, number, event)
        try:
            yield _read_event(at, sample.session, kept)
        except UNREADABLE as error:
            yield Skipped(at.source, at.line, reason_of(error))


def _read_event(at: Document, session: str, kept: _Resolver) -> Item:
    event = msgspec.json.decode(at.data, type=_Event)
    reason = _no_call(event)
    if reason:
        return Skipped(at.source, at.line, reason, other=True)
    call = event.call if isinstance(event.call, Mapping) else {}
    notes: list[str] = []
    body, response = kept.request(call, notes), _response(event, call)
    if body is None and response is None:
        reason = notes[0] if notes else "neither a body nor counters of a call"
        return Skipped(at.source, at.line, reason)
    # Inspect dates an event when the call starts, and notes when it was complete.
    start = read_time(event.timestamp)
    exchange = HttpExchange(
        source=at.source,
        line=at.line,
        request=body,
        at=start,
        duration=between(start, read_time(event.completed)),
        session=session,
    )
    found = answered(exchange, response)
    return replace(found, model=found.model or event.model, notes=(*notes, *found.notes))


def _no_call(event: _Event) -> str:
    """Why an event is no call that reached a provider; empty if it is one."""
    if event.event != "model":
        return f"an event of the kind '{event.event[:40]}', no call of a model"
    if event.pending is True:
        return "a call without its answer: the log was written while it ran"
    return "answered from Inspect's own cache: nothing was sent" if event.cache == "read" else ""


def _response(event: _Event, call: Values) -> Response | None:
    """The answer, with Inspect's own counters and error where the call has none."""
    output = event.output if isinstance(event.output, Mapping) else {}
    answer = call.get("response")
    found = response_of(answer) if isinstance(answer, Mapping) else Response()
    usage = found.usage or tracked_usage.inspect(counters.part(output, "usage"))
    error = found.error or text_of(event.error) or text_of(output.get("error"))
    if usage is None and not error:
        return None
    return replace(found, usage=usage, error=error)


class _Budget:
    """What may still be put back: in this file, and in the request at hand."""

    def __init__(self) -> None:
        self.file = MAX_RESOLVED
        self.request = 0

    def start(self) -> None:
        """Begin a request."""
        self.request = MAX_REQUEST

    def take(self, size: int) -> None:
        """Raises ValueError when that is too much."""
        self.file -= size
        self.request -= size
        if self.request < 0:
            raise ValueError("it is larger than a request can be")
        if self.file < 0:
            raise ValueError("the requests of this file are too large together")


class _Resolver:
    """Puts back what a sample keeps aside: attachments, and the messages of its calls."""

    def __init__(self, sample: _Sample, budget: _Budget) -> None:
        old = sample.transcript or _Transcript()
        self.attachments = old.content if sample.attachments is None else sample.attachments
        self.calls = (sample.events_data or _Pools()).calls
        self.budget = budget

    def request(self, call: Values, notes: list[str]) -> dict[str, Any] | None:
        """The body of a call; None where the log holds none, or, with a note, one that cannot be."""
        stated = call.get("request")
        if not isinstance(stated, dict):
            return None
        try:
            self.budget.start()
            # The pool holds what the request itself leaves out.
            whole = {**stated, **self._pooled(call)}
            return {name: self._resolved(value) for name, value in whole.items()}
        except UNREADABLE as error:
            notes.append(f"request not used: {reason_of(error)}")
            return None

    def _pooled(self, call: Values) -> dict[str, Any]:
        """The messages that newer versions keep once for all calls of a sample."""
        if not isinstance(call.get("call_refs"), list):
            return {}
        messages: list[Any] = []
        for start, end in msgspec.convert(call["call_refs"], list[tuple[int, int]]):
            if not 0 <= start <= end <= len(self.calls):
                raise ValueError("its messages are not in the sample")
            # Before the copy is made: two numbers may ask for the whole pool again and again.
            self.budget.take((end - start) * VALUE)
            messages += self.calls[start:end]
        return {text_of(call.get("call_key")) or "messages": messages}

    def _resolved(self, value: Any) -> Any:
        match value:
            case str():
                text = self._text(value)
                self.budget.take(VALUE + len(text))
                return text
            case list():
                self.budget.take(VALUE)
                return [self._resolved(item) for item in value]
            case dict():
                self.budget.take(VALUE + sum(map(len, value)))
                return {name: self._resolved(item) for name, item in value.items()}
            case _:
                self.budget.take(VALUE)
                return value

    def _text(self, value: str) -> str:
        if not value.startswith(ATTACHMENT):
            return value
        name = value.removeprefix(ATTACHMENT)
        if name not in self.attachments:
            raise ValueError("an attachment is not in the sample")
        return self.attachments[name]


FORMAT = Format(
    id="inspect_ai",
    title="Inspect evaluation logs",
    example="logs/2026-11-20T09-00-00_task.eval",
    traits=frozenset({Trait.PARSED_BYTES, Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
