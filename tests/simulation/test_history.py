"""A history under edits: what is taken over between requests is what making all of it anew gives."""

from __future__ import annotations

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.prompt.chain import root_key
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.edit import made_message
from ctxdoc.simulation.history.keys import EACH, TAKEN_OVER, Keys, Known
from ctxdoc.simulation.history.mapped import Mapped
from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.history.overlap import common_end, common_start, moved_run


def message(number: int, tokens: int = 10) -> Message:
    block: dict[str, Json] = {"type": "text", "text": f"message {number}"}
    return made_message({"role": "user", "content": [block]}, [tokens])


POOL = [message(number, number + 1) for number in range(12)]
HALVED = {each: message(100 + at, each.size // 2) for at, each in enumerate(POOL)}
HISTORIES = st.lists(st.lists(st.sampled_from(POOL), max_size=8), min_size=1, max_size=6)


def halved(messages: list[Message]) -> list[Message]:
    return [HALVED[each] for each in messages]


@given(HISTORIES)
def test_a_mapped_history_is_what_mapping_all_of_it_gives(histories: list[list[Message]]) -> None:
    mapped = Mapped()
    for history in histories:
        mapped = mapped.next(history, halved)
        assert mapped.messages == history
        assert mapped.sent == halved(history)
        assert mapped.size == sum(each.size for each in halved(history))
        assert mapped.differs is bool(history)


@given(st.lists(st.sampled_from(POOL), max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_a_change_in_the_middle_leaves_the_rest(
    history: list[Message], first: int, length: int
) -> None:
    mapped = Mapped().next(history, list)
    assert not mapped.differs
    end = first + length
    changed = mapped.changed(first, end, halved)
    assert changed.sent == [*history[:first], *halved(history[first:end]), *history[end:]]
    assert changed.size == sum(each.size for each in changed.sent)


PARTS = [number.to_bytes(4, "big") for number in range(2 * EACH + 5)]


def key(root: str, count: int, parts: list[bytes] = PARTS) -> bytes:
    """The key of a beginning, by its definition."""
    return blake2b(root_key(root) + b"".join(parts[:count]), digest_size=16).digest()


@given(st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=8))
def test_a_key_is_the_hash_of_its_beginning_in_whatever_order_keys_are_asked_for(
    asked: list[int],
) -> None:
    keys = Keys("m", PARTS, Known())
    assert [keys[index] for index in asked] == [key("m", index + 1) for index in asked]


@given(st.integers(0, len(PARTS)), st.integers(0, len(PARTS) - 1))
def test_what_is_taken_over_of_a_beginning_holds_behind_another_end(end: int, asked: int) -> None:
    known = Known()
    list(Keys("m", PARTS, known)[:])
    other = [*PARTS[:end], *(b"x" + each for each in PARTS[end:])]
    assert Keys("m", other, known.upto(end))[asked] == key("m", asked + 1, other)


def test_the_keys_that_are_taken_over_are_the_last_ones() -> None:
    keys = dict.fromkeys(range(TAKEN_OVER + 2), b"")
    last = Known(keys=keys).upto(TAKEN_OVER + 1).keys
    assert (min(last), max(last), len(last)) == (1, TAKEN_OVER, TAKEN_OVER)
    assert len(Known(keys=keys).upto(TAKEN_OVER).keys) == TAKEN_OVER


LISTS = st.lists(st.sampled_from(POOL[:4]), max_size=9)


@given(LISTS, LISTS)
def test_common_start_and_end_are_what_counting_gives(
    one: list[Message], two: list[Message]
) -> None:
    def counted(a: list[Message], b: list[Message]) -> int:
        count = 0
        while count < min(len(a), len(b)) and a[count] is b[count]:
            count += 1
        return count

    assert common_start(one, two) == counted(one, two)
    assert common_end(one, two) == counted(one[::-1], two[::-1])


@given(st.lists(st.sampled_from(POOL), unique=True, max_size=9), st.integers(0, 9), st.booleans())
def test_a_window_is_a_run_that_moved_behind_at_most_one_new_message(
    old: list[Message], first: int, summed: bool
) -> None:
    ahead = [message(99)] if summed else []
    new = [*ahead, *old[first:]]
    at, run = moved_run(old, new, 0)
    if first < len(old):
        assert (at, run) == (len(ahead), range(first, len(old)))
    else:
        assert not run
