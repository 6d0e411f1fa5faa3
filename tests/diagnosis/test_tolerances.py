"""Boundaries of a loss, of a proof and of what a model caches, each on both sides."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.diagnosis.attribution import case_of_pair
from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.find import find_causes
from tests.diagnosis.test_comparison import said
from tests.prompt.test_server_edits import body, line, requests_of, usage

FIRST = said("Please look at the meters of the north wing and say which one is broken.")
LATER = [*FIRST, *said("x", "The third one.", "And in the south wing?")[1:]]
WRITTEN = 2_000


def appended(folder: Path, read: int, gap: float = 30) -> Case:
    """A request that only appends, and read so many of the 2,000 tokens that the first one wrote."""
    one = line(body(FIRST), 0, {"usage": usage(write=WRITTEN)})
    two = line(body(LATER), gap, {"usage": usage(read=read, write=WRITTEN + 40 - read)}, 2)
    return case_of_pair(*requests_of(folder, one, two))


@pytest.mark.parametrize(("missing", "lost"), [(0, 0), (58, 0), (59, 59), (2_000, 2_000)])
def test_three_of_a_hundred_tokens_are_an_error_of_sizes(
    tmp_path: Path, missing: int, lost: int
) -> None:
    """Of 1,942 read tokens 58.26 are 3 %, of 1,941 they are 58.23."""
    case = appended(tmp_path, WRITTEN - missing)
    assert (case.lost, case.is_loss) == (lost, lost > 0)
    assert sum(case.parts.values()) == lost


@pytest.mark.parametrize(("lost", "is_loss"), [(0, False), (20, False), (21, True)])
def test_more_than_twenty_tokens_are_a_loss(tmp_path: Path, lost: int, *, is_loss: bool) -> None:
    assert replace(appended(tmp_path, WRITTEN), lost=lost).is_loss is is_loss


@given(read=st.integers(0, WRITTEN))
@settings(max_examples=30, deadline=None)
def test_what_is_not_read_of_what_was_written_is_lost(read: int) -> None:
    """The parts of a loss are the loss: nothing is explained twice, and nothing is left over."""
    with tempfile.TemporaryDirectory() as folder:
        case = appended(Path(folder), read)
    missing = WRITTEN - read
    assert case.lost == (missing if missing > max(20, 0.03 * read) else 0)
    assert sum(case.parts.values()) == case.lost
    assert all(tokens >= 0 for tokens in case.parts.values())


@pytest.mark.parametrize(
    ("simulated", "read", "proof"),
    [
        # 3 % of 10,000 are 300 tokens
        (10_000, 9_700, Confidence.CERTAIN),
        (10_000, 9_699, Confidence.LIKELY),
        (10_000, 10_300, Confidence.CERTAIN),
        (10_000, 10_301, Confidence.LIKELY),
        # 3 % of 500 are 15: the 20 tokens are more
        (500, 480, Confidence.CERTAIN),
        (500, 479, Confidence.LIKELY),
        (0, 20, Confidence.CERTAIN),
        (0, 21, Confidence.LIKELY),
    ],
)
def test_a_cause_is_certain_while_the_model_reads_what_was_read(
    tmp_path: Path, simulated: int, read: int, proof: Confidence
) -> None:
    """Within three of a hundred or twenty tokens, whichever is more."""
    case = appended(tmp_path, WRITTEN)
    outcome = replace(case.outcome, usage=replace(case.outcome.usage, cache_read=simulated))
    case = replace(case, outcome=outcome, counters=replace(case.counters, cache_read=read))
    assert case.proof is proof


def test_counters_that_were_simulated_prove_nothing(tmp_path: Path) -> None:
    one = line(body(FIRST), 0, {"usage": usage(write=WRITTEN)})
    case = case_of_pair(*requests_of(tmp_path, one, line(body(LATER), 30, None)))
    assert case.proof is Confidence.LIKELY


@pytest.mark.parametrize(
    ("gap", "part"),
    [(9.9, Part.VISIBILITY), (10.0, Part.PROVIDER), (30.0, Part.PROVIDER)],
)
def test_two_that_both_write_within_ten_seconds_ran_side_by_side(
    tmp_path: Path, gap: float, part: Part
) -> None:
    """An entry can be read once the first answer begins; a log without that time is given ten seconds."""
    case = appended(tmp_path, 0, gap)
    assert case.part is part
    assert case.parts[part] == WRITTEN


@pytest.mark.parametrize(("tokens", "short"), [(1_023, True), (1_024, False), (1_025, False)])
def test_a_prompt_as_long_as_the_minimum_is_not_below_it(
    tmp_path: Path, tokens: int, *, short: bool
) -> None:
    """Claude Sonnet 4.5 caches nothing under 1,024 tokens (facts 1.6)."""
    row = line(body(FIRST), 0, {"usage": usage(rest=tokens)})
    later = line(body(FIRST), 3_600, {"usage": usage(rest=tokens)}, 2)
    finding, _ = find_causes(case_of_pair(*requests_of(tmp_path, row, later)))
    assert (finding.cause.id == "below_minimum") is short
