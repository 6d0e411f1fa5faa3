"""One model: what replay, simulate, diagnose and gate say of the same requests is the same number.

Random logs hold several conversations, forks, compactions, images, pauses and clocks, with counters and
without; the recorded ones are those of the fixtures.
"""

from __future__ import annotations

import copy
import json
import random
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxdoc as api
from ctxdoc.errors import CtxdocError
from tests.support.sessions import (
    ROOT,
    START,
    Body,
    clock_goes_on,
    first_body,
    lines,
    marked,
    record,
    tools_move,
    turn,
)
from tests.support.stand_in import StandIn


def _blank(edge: int) -> Body:
    """A blank image of 6·6 patches, which the stand-in takes for about as many tokens by its letters."""
    from PIL import Image

    with BytesIO() as stream:
        Image.new("1", (edge, edge)).save(stream, "PNG", optimize=True)
        data = b64encode(stream.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


IMAGE = _blank(168)
FIXTURES = ROOT / "fixtures"
RECORDED = [
    path
    for folder in ("logs", "evidence", "formats", "threads")
    for path in sorted((FIXTURES / folder).iterdir())
    if path.name != "expect.json"
]


class Conversation:
    """An agent that goes on from request to request."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)
        self.name = f"c{number}"
        self.body = first_body(random.Random(1))
        self.body["messages"][0]["content"][0]["text"] = f"Conversation {number}. Mend it, please."
        self.steps = 0

    def goes_on(self) -> None:
        self.steps += 1
        self.body["messages"] += turn(self.rng, 100 * self.rng.randrange(9) + self.steps)

    def compact(self) -> None:
        """A summary in the place of the history."""
        text = "This session continues from an earlier one. Summary: the parcels were weighed. "
        self.body["messages"] = [{"role": "user", "content": [{"type": "text", "text": 9 * text}]}]

    def show(self) -> None:
        """An image in the newest message."""
        self.body["messages"][-1]["content"].append(copy.deepcopy(IMAGE))

    def forked(self, number: int) -> Conversation:
        """A branch of it."""
        other = Conversation(number)
        other.body = copy.deepcopy(self.body)
        other.steps = self.steps
        return other


EVENTS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["", "", "", "clock", "tools", "fork", "compact", "image", "bare"]),
    st.sampled_from([20, 20, 20, 1, 299, 301, 3700]),
)
"""The conversation that goes on, what happens before it does, and seconds since the request before."""


def records_of(events: list[tuple[int, str, int]], *, counters: bool, sessions: bool) -> list[Body]:
    """The log of some events, as the stand-in bills them."""
    cache, now, made = StandIn(), 0, [Conversation(1)]
    changes: dict[str, Callable[[Body], None]] = {"clock": clock_goes_on, "tools": tools_move}
    records = []
    for number, (which, event, pause) in enumerate(events):
        now += pause
        if which == len(made):
            made.append(Conversation(which + 1))
        talk = made[min(which, len(made) - 1)]
        if event == "fork":
            talk = talk.forked(len(made) + 1)
            made.append(talk)
        elif event == "compact":
            talk.compact()
        elif event == "image":
            talk.show()
        elif event in changes:
            changes[event](talk.body)
        sent = marked(talk.body)
        usage = cache.answer(sent, now)
        shown = usage if counters and event != "bare" else None
        row = record(sent, START + timedelta(seconds=now), shown, number)
        records.append({**row, **({"session_id": talk.name} if sessions else {})})
        talk.goes_on()
    return records


class Documents:
    """What the commands say of one log, as their JSON."""

    def __init__(self, path: Path) -> None:
        log = str(path)
        self.replay = json.loads(api.replay(log).to_json())
        self.totals = self.replay["totals"]
        self.gate = json.loads(api.gate(log, max_lost_cost=0, min_hit_ratio=0).to_json())
        simulated = api.simulate(log, strategy="keep", placement=("recorded", "oracle"))
        self.simulate = json.loads(simulated.to_json())
        self.rows = {row["placement"]: row for row in self.simulate["rows"]}
        self.diagnose = json.loads(api.diagnose(log).to_json())

    @property
    def whole(self) -> bool:
        """Whether every request has counters of one pass, and is one of those that are simulated: of several
        passes nothing is known but their sum, and a simulation sends each prompt once."""
        counted, rows = self.totals["requests_with_counters"], self.replay["requests"]
        once = all(not row["compaction"] and row["fidelity"] != "several passes" for row in rows)
        return once and bool(counted == self.totals["requests"] == self.simulate["requests"])


SIZE_SHARE = 0.005
"""Share of a log's input by which the sizes of its blocks may be off."""


def check_replay_and_gate(found: Documents) -> None:
    limits = {limit["name"]: limit["value"] for limit in found.gate["limits"]}
    assert limits["max_lost_cost"] == found.totals["gated_cost"]
    share, exact = found.totals["hit_ratio"], limits["min_hit_ratio"]
    # The gate has six places of it, and the replay four.
    assert (share is None) == (exact is None)
    assert share is None or abs(Decimal(exact) - Decimal(share)) <= Decimal("0.000051")


def check_replay_and_simulate(found: Documents) -> None:
    recorded, oracle, totals = found.rows["recorded"], found.rows["oracle"], found.totals
    if found.whole:
        assert found.simulate["recorded"]["billed"] == totals["cost"]
        assert oracle["cost"] == totals["cost_oracle"]
    elif not totals["requests_with_counters"]:
        simulated = totals["simulated"]
        assert recorded["input"] == simulated["input"]
        assert recorded["cache_read"] == simulated["cache_read"]
        assert recorded["uncached"] == simulated["uncached"]


def check_sizes(found: Documents) -> None:
    """A block has one size wherever a strategy puts it: it may be off from what counters say of it in
    another prompt, by no more than rounding and an image's weight."""
    if found.whole:
        recorded, reported = found.rows["recorded"]["input"], found.totals["input"]
        assert abs(recorded - reported) <= SIZE_SHARE * reported


def check_replay_and_diagnose(found: Documents) -> None:
    """The request that diagnose chooses is told alike by both."""
    told = found.diagnose
    row = next(
        each
        for each in found.replay["requests"]
        if (each["source"], each["line"]) == (told["after"]["source"], told["after"]["line"])
    )
    if row["cause"] is not None:
        assert told["cause"]["id"] == row["cause"]
        assert told["cause"]["confidence"] == row["confidence"]
        assert told["cost"]["lost"] == row["lost_cost"]
    elif row["waste"] is not None:
        assert told["cause"]["id"] == row["waste"]
    if row["reported"] is not None and told["tokens"]["survives"] is not None:
        assert told["tokens"]["survives"] == row["reported"]["cache_read"]


def check_sums(found: Documents) -> None:
    """The totals are those of the requests that they are made of."""
    rows = found.replay["requests"]
    if any(row["compaction"] for row in rows):
        return  # passes of a compaction are in the totals and in no counter of a request
    reported = [row["reported"] for row in rows if row["reported"] is not None]
    for part in ("uncached", "cache_read", "cache_write_5m", "cache_write_1h"):
        assert found.totals[part] == (sum(each[part] for each in reported) if reported else None)
    lost = sum(Decimal(row["lost_cost"] or 0) for row in rows)
    assert Decimal(found.totals["lost_cost"] or 0) == lost


CHECKS = (check_replay_and_gate, check_replay_and_simulate, check_replay_and_diagnose, check_sums)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, min_size=2, max_size=9), st.booleans(), st.booleans())
def test_the_commands_agree_on_random_logs(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[int, str, int]],
    counters: bool,
    sessions: bool,
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    path.write_text(lines(records_of(events, counters=counters, sessions=sessions)))
    found = Documents(path)
    for check in (*CHECKS, check_sizes):
        check(found)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_commands_agree_on_recorded_logs(path: Path) -> None:
    try:
        found = Documents(path)
    except CtxdocError:
        pytest.skip("one of the commands has nothing to say of it")
    for check in CHECKS:
        check(found)
