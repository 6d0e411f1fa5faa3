"""The chain of keys: equal keys mean equal beginnings, and nothing else does."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.prompt.chain import chained, next_key, root_key
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.render import Renderer, render
from tests.support.prompts import prompt, said, sent

MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant"]),
        st.lists(st.sampled_from("ab"), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=4,
)
Talk = list[tuple[str, list[str]]]


def beginnings(talk: Talk) -> list[str]:
    """Every beginning as text that ends behind a block: a message that is cut short stays open."""
    whole: list[tuple[str, list[str]]] = []
    found = []
    for role, texts in talk:
        whole.append((role, []))
        for text in texts:
            whole[-1][1].append(text)
            found.append(json.dumps(whole))
    return found


def rendered(talk: Talk, **more: object) -> Prefix:
    return prompt([said(role, *texts) for role, texts in talk], **more)


@settings(max_examples=120, deadline=None)
@given(MESSAGES, MESSAGES)
def test_keys_are_equal_where_beginnings_are(one: Talk, two: Talk) -> None:
    keys = rendered(one).keys, rendered(two).keys
    texts = beginnings(one), beginnings(two)
    for left, text in zip(keys[0], texts[0], strict=True):
        for right, other in zip(keys[1], texts[1], strict=True):
            assert (left == right) is (text == other)


@settings(max_examples=60, deadline=None)
@given(MESSAGES, st.data())
def test_keys_that_are_taken_over_are_those_that_would_be_made(
    talk: Talk, data: st.DataObject
) -> None:
    found = rendered(talk)
    known = data.draw(st.integers(0, len(found.keys)))
    assert chained(found.root, found.segments, found.keys[:known]) == found.keys


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_a_renderer_of_many_requests_gives_what_one_of_each_gives(talks: list[Talk]) -> None:
    """What is taken over from an earlier request changes nothing."""
    renderer = Renderer()
    for talk in talks:
        request = sent([said(role, *texts) for role, texts in talk])
        alone, shared = render(request), renderer.render(request)
        assert (shared.keys, shared.row, shared.data) == (alone.keys, alone.row, alone.data)


def test_a_role_opens_a_message_and_stands_there_once() -> None:
    """The same two blocks in one message, in two of one role, and in two of two roles: three prompts."""
    talks: list[Talk] = [
        [("user", ["a", "b"])],
        [("user", ["a"]), ("user", ["b"])],
        [("user", ["a"]), ("assistant", ["b"])],
    ]
    assert len({rendered(talk).keys[-1] for talk in talks}) == 3
    assert len({rendered(talk).keys[0] for talk in talks}) == 1


def test_a_role_without_and_an_empty_role_are_two_beginnings() -> None:
    key = root_key("model")
    assert next_key(key, b"x") != next_key(key, b"x", "")


def test_the_model_is_the_root_of_every_key() -> None:
    one, two = (rendered([("user", ["a"])], model=m) for m in ("claude-opus-5", "claude-opus-4-8"))
    assert not set(one.keys) & set(two.keys)
