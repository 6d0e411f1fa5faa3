"""`ctxdoc.diagnose`: why the cache was not read, of two requests or one log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ctxdoc.api.outcome import Outcome, skipped_lines
from ctxdoc.api.read import Source, check_model, read
from ctxdoc.api.rows import Row, named, rows_of
from ctxdoc.diagnosis.diagnose import Diagnosis, diagnose_log, diagnose_pair
from ctxdoc.diagnosis.loss import Cost
from ctxdoc.errors import InputError
from ctxdoc.outputs.report import Report
from ctxdoc.reports.diagnose import diagnosis_report
from ctxdoc.request.codec import Json
from ctxdoc.request.log import Log

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter
    from ctxdoc.live.double_send import Plan

# Digits are bounded: a number of thousands of them takes longer to read than a log.
PAIR = re.compile(r"\s*(\d{1,9})\s*[,:-]\s*(\d{1,9})\s*")


class DiagnosisOutcome(Outcome, frozen=True, kw_only=True, dict=True):
    """Why the cache was not read: the cause first, then what else is true."""

    diagnosis: Diagnosis

    @property
    def state(self) -> str:
        """alive, partial, dead, below_minimum, cold or unknown."""
        return str(self.diagnosis.state)

    @property
    def totals(self) -> Cost:
        """Money of the later request: `paid`, `if_hit`, `lost`, `corrected`."""
        return self.diagnosis.cost

    @cached_property
    def rows(self) -> list[Row]:
        """The cause and what else is true, one each; place, tokens and money stand with the cause."""
        found: Any = self.to_dict()
        pair = {each: f"{found[each]['source']}:{found[each]['line']}" for each in SIDES}
        about: dict[str, Json] = {**pair, "cache": found["cache"]}
        # A loss has one place and one price: with each cause they would be summed several times over.
        first = {name: found["first_difference"][name] for name in ("section", "json_path", "byte")}
        lost = {"lost_tokens": found["tokens"]["lost"], "lost_cost": found["cost"]["lost"]}
        causes = [{**found["cause"], **first, **lost}, *found["also"]]
        return rows_of({**about, **named(each)} for each in causes)

    @property
    def findings(self) -> list[Row]:
        """The rows: each is a finding."""
        return self.rows

    def report(self, *, excerpts: bool = True) -> Report:
        """What all outputs write."""
        return diagnosis_report(self.diagnosis, excerpts=excerpts)

    def plan_live(self, *, diagnostics: bool = False) -> Plan:
        """What `send_live` would send, and the most that it can cost; `diagnostics` asks for the API's own
        word on a miss.

        Raises InputError where the log does not hold the body as it was sent.
        """
        from ctxdoc.live.double_send import plan_of

        return plan_of(self.diagnosis.case, diagnostics=diagnostics)

    def send_live(self, plan: Plan) -> DiagnosisOutcome:
        """The diagnosis with step 1 done at the API: the later request is sent two or three times, which
        costs money.

        Raises InputError where there is no key.
        """
        from ctxdoc.live.client import client_for
        from ctxdoc.live.double_send import send_twice

        with client_for("--live") as client:
            sent = send_twice(plan, self.diagnosis.case, client)
        return replace(self, diagnosis=replace(self.diagnosis, double_send=sent))


SIDES = ("before", "after")


def diagnose(
    *inputs: Source,
    pair: str | tuple[int, int] | None = None,
    diff: bool = False,
    model: str = "",
    strict: bool = False,
    count_tokens: bool | TokenCounter = False,
) -> DiagnosisOutcome:
    """Why the cache was not read: the byte, the cause, the price and the fix.

    `inputs` are two with one request each, the earlier one first, or one log, of which the costliest miss is
    taken, or the `pair` of requests, counted from 1. `diff` compares them even where it is not needed.

    Raises InputError for what cannot be read, for a pair that is not there, and for three inputs;
    NoRequestError where there is no body to compare.

        found = ctxdoc.diagnose("before.json", "after.json")
        found.state, found.findings[0]["cause"], found.totals.lost
    """
    check_model(model)

    def read_one(source: Source) -> Log:
        return read(source, model=model, strict=strict, count_tokens=count_tokens)

    match inputs:
        case [one]:
            log = read_one(one)
            numbers = _numbers(pair, len(log.requests))
            found = diagnose_log(log, numbers, always_diff=diff)
            return DiagnosisOutcome(diagnosis=found, warnings=skipped_lines(log))
        case [one, two]:
            if pair:
                raise InputError("--pair goes with one log", "give one file, or leave out --pair")
            if one == two == "-":
                raise InputError("standard input cannot be both requests", "name one of the files")
            logs = [read_one(one), read_one(two)]
            # A file of one request is what is asked for; of a session the newest one is the question.
            before, after = (log.requests[-1] for log in logs)
            found = diagnose_pair(before, after, always_diff=diff)
            return DiagnosisOutcome(diagnosis=found, warnings=tuple(_warnings(logs)))
        case _:
            raise InputError(
                f"diagnose takes two requests or one log, not {len(inputs)} files",
                "for many files, join them: cat *.jsonl | ctxdoc diagnose -",
            )


def _numbers(pair: str | tuple[int, int] | None, count: int) -> tuple[int, int] | None:
    """The numbers of two requests, from 1; None where no pair was asked for."""
    if not pair:
        return None
    text = pair if isinstance(pair, str) else ",".join(map(str, pair))
    found = PAIR.fullmatch(text)
    numbers = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= numbers[0] < numbers[1] <= count:
        raise InputError(
            f"--pair '{text}' does not name two of the {count} requests",
            f"write the earlier one first, from 1 to {count}, as in --pair 1,2",
        )
    return numbers


def _warnings(logs: Sequence[Log]) -> Iterator[str]:
    for log in logs:
        if len(log.requests) > 1:
            first, count = log.requests[0].source, len(log.requests)
            yield f"{first} holds {count} requests; the last one is taken"
    for log in logs:
        yield from skipped_lines(log)
