"""A whole log replayed through the cache in time order: what each request read, lost and cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.prefix_tree import PrefixTree
from ctxdoc.diagnosis.attribution import case_of, written_keys
from ctxdoc.diagnosis.by_counters import Counted, CounterStep
from ctxdoc.diagnosis.causes import CAUSES, Case, Part
from ctxdoc.diagnosis.find import first_difference
from ctxdoc.ledger.block_costs import BlockCosts, Blocks
from ctxdoc.ledger.fidelity import Fidelity, fidelity_of
from ctxdoc.ledger.miss import below_minimum_of, judge, miss_of
from ctxdoc.ledger.request_cost import RequestCost, oracle_of, price_row
from ctxdoc.pricing.rates import find_rates
from ctxdoc.pricing.tariff import tariff_of
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.settings import forced_tool
from ctxdoc.replay.bound import Bound
from ctxdoc.replay.growth import Growth, Turn, iter_growth
from ctxdoc.replay.measure import passed_often
from ctxdoc.replay.sessions import Session, named
from ctxdoc.replay.thread import Thread, Threads
from ctxdoc.replay.walk import Step, Walk
from ctxdoc.request.log import Log, missing_of
from ctxdoc.request.request import Request, Section
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import is_opaque
from ctxdoc.tokens.fingerprint import Fingerprint, locked, stable_count

TELL_EVERY = 64
NO_SESSION = "nothing says which request came before it"
NO_COUNTERS = "neither a body nor counters"


class Grown(Struct, frozen=True):
    """A stretch of a session that only appends."""

    session: str
    rows: tuple[int, ...]
    """Numbers of its requests in the log, from 1."""
    fit: Growth


class Ledger(Struct, frozen=True, kw_only=True):
    """What a log tells once it is replayed."""

    log: Log
    """What was read, without its requests."""
    missing: tuple[str, ...]
    """What it cannot tell."""
    sessions: tuple[Session, ...]
    by_index: dict[int, RequestCost]
    """The requests by their index in the log, in its order."""
    order: tuple[int, ...]
    """The same indexes in time order, in which they were replayed."""
    blocks: Blocks
    """Of the requests with bodies, the dearest first."""
    growth: tuple[Grown, ...]
    heads: tuple[Fingerprint, ...]
    """Tools, system prompt and settings of the request that begins each thread, where they were asked
    for."""
    called: frozenset[str]
    """Tools that an answer called or a request forced."""

    @property
    def rows(self) -> tuple[RequestCost, ...]:
        """The requests in the order of the log."""
        return tuple(self.by_index.values())

    def rows_of(self, session: Session) -> list[RequestCost]:
        """The requests of a session."""
        return [self.by_index[index] for index in session.requests]

    def grown_rows(self, grown: Grown) -> list[RequestCost]:
        """The requests of a stretch."""
        return [self.by_index[number - 1] for number in grown.rows]

    def origin_of(self, grown: Grown) -> Origin:
        """What the sizes of a stretch rest on: its weakest one."""
        rows = self.grown_rows(grown)
        if all(row.reported is not None for row in rows):
            return Origin.REPORTED
        guessed = any(row.origin is Origin.ESTIMATED for row in rows)
        return Origin.ESTIMATED if guessed else Origin.CALIBRATED


def replay(
    log: Log,
    *,
    only: str = "",
    places: int = 0,
    heads: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Ledger:
    """Replays a log as a whole, and keeps what belongs to one session if it is named.

    Of the first `places` misses of each cause it is kept where they differ, and with `heads` what each
    thread begins with. Raises InputError for a name
    that no session, or that several, begin with. `progress` is told how many requests were replayed
    since it was last told.
    """
    walk, missing = Walk(log.requests, only=only, consume=True), missing_of(log)
    log = replace(log, requests=())
    run = _Run(log, walk, places, heads=heads)
    for count, step in enumerate(walk.steps(), start=1):
        run.take(step)
        if progress is not None and count % TELL_EVERY == 0:
            progress(TELL_EVERY)
    return run.finished(only, missing)


class _Run:
    """The state of one replay."""

    def __init__(self, log: Log, walk: Walk, places: int, *, heads: bool) -> None:
        self.log = log
        self.walk = walk
        self.places: defaultdict[str, int] = defaultdict(lambda: places)
        """How many more places are kept, by cause."""
        self.heads: dict[bytes, Fingerprint] | None = {} if heads else None
        self.rows: list[RequestCost | None] = [None] * len(walk.requests)
        tree = PrefixTree()
        self.block_costs = BlockCosts(tree)
        self.bound = Bound(tree)
        self.bounds: dict[int, int] = {}
        """Numbers of the requests in the tree of the bound."""
        self.unread: dict[int, tuple[bytes, ...]] = {}
        """By request: entries that nobody had read when it was sent; a later one may."""
        self.called: set[str] = set()
        self.counted: dict[str, Counted] = {}
        self.threads = Threads()
        self.turns: dict[Thread, list[Turn]] = {}
        """What each thread has sent."""

    def take(self, step: Step) -> None:
        """Adds a request of the log."""
        request = step.request
        row = RequestCost(
            number=step.index + 1,
            request=_without_prompt(request),
            session=step.session,
            tariff=tariff_of(request),
        )
        self.rows[step.index] = row
        self._note_calls(request)
        row.reported = request.usage
        if step.replayed is not None:
            self._fill(row, case_of(step.replayed), step.earlier)
            return
        reason = step.reason or "; ".join(request.notes) or None
        row.reason = reason or (None if request.usage else NO_COUNTERS)
        self._count(row, request)

    def _note_calls(self, request: Request) -> None:
        self.called.update(request.response.called if request.response else ())
        if request.body is not None and len(bytes(request.body.tool_choice)) > len(b"null"):
            # A forced tool is in use even where the log ends before its answer.
            self.called.add(forced_tool(request.body))

    def _fill(self, row: RequestCost, case: Case, before: int | None) -> None:
        """A request with a body."""
        request = case.after.request
        row.reported = case.after.usage if request.usage is not None else None
        row.origin = Origin.SIMULATED if request.simulated_usage else case.after.sizes.origin
        if row.origin is Origin.ESTIMATED:
            row.opaque = any(map(is_opaque, case.after.prefix.segments))
        row.compared = before + 1 if before is not None else None
        if case.part not in (Part.REFUSAL, Part.RECORD):
            _simulate(row, case)
        row.judged = True
        row.related = case.related and before is not None
        judge(row, case)
        self._keep_evidence(row, case)
        # What it lost says whether it begins a conversation: only now is its thread known.
        self._thread(row, case, before)
        row.repeated = case.part is Part.RECORD
        if row.counters is not None and not row.repeated:
            self._charge(row, case, row.counters)

    def _keep_evidence(self, row: RequestCost, case: Case) -> None:
        """What is needed of a case once the walk has let go of it."""
        if case.unread and row.waste is not None:
            self.unread[row.number - 1] = written_keys(case)
        wrong = row.miss or row.waste
        if wrong is not None and self.places[wrong.cause] > 0:
            self.places[wrong.cause] -= 1
            row.difference = first_difference(case)

    def _charge(self, row: RequestCost, case: Case, counters: Usage) -> None:
        """What a request cost, shared out among its blocks."""
        request = case.after.request
        price_row(row, request, counters)
        row.below = below_minimum_of(case)
        # The bound is over all prompts of the log: a session that is left out may write for one that is kept.
        self.bounds[row.number - 1] = self.bound.add(case.after)
        if self.walk.kept is not None and row.number - 1 not in self.walk.kept:
            return
        if passed_often(request):
            # Counters of several passes tell no size of a block.
            return
        self.block_costs.add(case.after, counters, find_rates(row.tariff, counters.input))

    def _thread(self, row: RequestCost, case: Case, before: int | None) -> None:
        """Adds a request to the thread that it continues, or begins one."""
        forked = row.miss is not None and CAUSES[row.miss.cause].is_fork
        continues = case.related and case.before.prefix.root == case.after.prefix.root
        thread, fresh = self.threads.go_on(
            row.number - 1, row.session, before, begins=forked or not continues
        )
        if fresh:
            row.opens = not _goes_on_changed(case)
            self._hold_head(case.after.prefix)
        turns = self.turns.setdefault(thread, [])
        if case.part not in (Part.REFUSAL, Part.RECORD):
            turns.append(Turn(row.number, case.after.sizes.total))

    def _hold_head(self, prefix: Prefix) -> None:
        count = stable_count(prefix)
        if self.heads is not None and count and prefix.keys[count - 1] not in self.heads:
            self.heads[prefix.keys[count - 1]] = locked(prefix, count)

    def _count(self, row: RequestCost, request: Request) -> None:
        """A request of which the log has counters at most."""
        usage = request.usage
        if usage is None:
            return
        price_row(row, request, usage)
        if request.refused:
            return
        if not request.session:
            # Without bodies only the name of a session says which request came before.
            row.reason = row.reason or NO_SESSION
            return
        heard = self.counted.setdefault(row.session, Counted()).next(row.number - 1, request)
        if heard is not None:
            self._hear(row, usage, heard)

    def _hear(self, row: RequestCost, usage: Usage, heard: CounterStep) -> None:
        """What counters tell of a request, and its thread."""
        row.judged = True
        row.compared = heard.before + 1 if heard.before is not None else None
        row.related = heard.before is not None
        if heard.rewrite is not None:
            row.miss = miss_of(heard.rewrite, usage, row.tariff)
        thread, _ = self.threads.counted(row.number - 1, row.session, heard.thread)
        replaced = row.miss is not None and CAUSES[row.miss.cause].replaces_history
        turns = self.turns.setdefault(thread, [])
        turns.append(Turn(row.number, usage.input, starts=replaced))

    def finished(self, only: str, missing: tuple[str, ...]) -> Ledger:
        self.block_costs.finish()
        self._settle()
        kept = range(len(self.rows)) if self.walk.kept is None else sorted(self.walk.kept)
        rows = {index: row for index in kept if (row := self.rows[index]) is not None}
        self._bound_rows(rows)
        sessions = self.walk.sessions()
        return Ledger(
            log=self.log,
            missing=missing,
            sessions=named(sessions, only) if only else sessions,
            by_index=rows,
            order=tuple(index for index in self.walk.order if index in rows),
            blocks=self.block_costs.blocks(),
            growth=tuple(self._growth(rows)),
            heads=tuple((self.heads or {}).values()),
            called=frozenset(self.called),
        )

    def _settle(self) -> None:
        """Judgements that later requests decide."""
        for session in self.counted.values():
            for index, rewrite in session.settled():
                fallen = self.rows[index]
                if fallen is not None and fallen.reported is not None:
                    fallen.miss = miss_of(rewrite, fallen.reported, fallen.tariff)
        for index, keys in self.unread.items():
            wasted = self.rows[index]
            # What was written for nobody so far is no waste once somebody read it.
            if wasted is not None and self.walk.was_read(keys):
                wasted.waste = None

    def _bound_rows(self, rows: dict[int, RequestCost]) -> None:
        """Gives each request its bound: what is sent again is known at the end only."""
        for index, row in rows.items():
            if index not in self.bounds or row.counters is None:
                continue
            least = self.bound.usage(self.bounds[index], row.counters.output)
            # Of several passes nothing better is known than what they cost.
            row.oracle = row.cost if passed_often(row.request) else oracle_of(row, least)

    def _growth(self, rows: dict[int, RequestCost]) -> Iterator[Grown]:
        for thread, sent in self.turns.items():
            if not any(turn.number - 1 in rows for turn in sent):
                continue
            turns = (replace(turn, number=index) for index, turn in enumerate(sent, start=1))
            for fit in iter_growth(turns):
                numbers = tuple(turn.number for turn in sent[fit.first - 1 : fit.last])
                yield Grown(thread.session, numbers, fit)


def _simulate(row: RequestCost, case: Case) -> None:
    """The counters of the cache model, beside those that were reported."""
    request, outcome = case.after.request, case.outcome.usage
    row.simulated = request.simulated_usage or outcome
    if row.reported is None:
        return
    # A log that counts tokens twice says nothing on the cache model: the right counters do.
    row.fidelity = fidelity_of(case.after.corrected or row.reported, outcome)
    if replace(row.simulated, output=row.reported.output) == row.reported:
        # One value where both say the same; the output is not simulated.
        row.simulated = row.reported
    if passed_often(request) and row.fidelity is not Fidelity.WITHIN:
        row.fidelity = Fidelity.PASSES


def _without_prompt(request: Request) -> Request:
    """What is kept of a request."""
    if request.body is None and request.raw is None:
        return request
    return replace(request, body=None, raw=None)


def _goes_on_changed(case: Case) -> bool:
    """Whether a request that continues none goes on with a conversation all the same: it begins with the
    same message, and one behind that is another."""
    change = case.divergence
    if not case.related or change is None or change.level is not Section.MESSAGES:
        return False
    return not change.difference.pointer.startswith("$.messages[0]")
