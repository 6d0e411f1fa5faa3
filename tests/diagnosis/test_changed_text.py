"""What the differing bytes of two texts are, by examples and by near misses."""

from __future__ import annotations

import pytest

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.diagnosis.changed_text import find_kind, find_kinds, judge_value, similarity
from ctxdoc.diagnosis.reordered import MAX_TEXT, Order, find_order
from ctxdoc.diagnosis.text_values import Kind, changed_span

PROSE = "You are a careful agent. Read the file before you edit it, and answer in one line.\n"

TIMES = [
    ("2026-09-14T09:00:00Z", "2026-09-14T09:02:20Z"),
    ("2026-09-14T09:00:00.123456+02:00", "2026-09-14T09:00:00.133456+02:00"),
    ("2026-09-14 10:58", "2026-09-14 11:02"),
    ("2026-09-14", "2026-09-15"),
    ("2026/09/14", "2026/10/01"),
    ("2026.11.20", "2026.11.21"),
    ("20260914T090000Z", "20260914T090001Z"),
    ("2026-W38", "2026-W39"),
    ("Mon, 14 Sep 2026 09:00:00 +0000", "Tue, 15 Sep 2026 09:00:00 +0000"),
    ("Monday, 14 September 2026", "Tuesday, 15 September 2026"),
    ("Mon Sep 14 09:00:00 2026", "Mon Sep 14 09:00:01 2026"),
    ("September 9, 2026", "September 10, 2026"),
    ("Sep 30", "Oct 1"),
    ("09/14/2026", "09/15/2026"),
    ("14.09.2026", "15.09.2026"),
    ("Montag, der 14. September 2026", "Dienstag, der 15. September 2026"),
    ("lundi 30 novembre 2026", "mardi 1 décembre 2026"),
    ("9 de septiembre de 2026", "10 de septiembre de 2026"),
    ("2026年9月14日", "2026年9月15日"),
    ("2026년 9월 14일", "2026년 9월 15일"),
    ("下午3:05", "下午3:06"),
    ("午前9時05分", "午前9時06分"),
    ("星期三", "星期四"),
    ("15:09:20", "15:09:34"),
    ("9:59", "10:00"),
    ("9:59 AM", "10:00 AM"),
    ("3 pm", "4 pm"),
    ("9.05 Uhr", "9.06 Uhr"),
    ("1795165200", "1795165260"),
    ("1795165200123", "1795165200999"),
    ("1795165200.5", "1795165201.5"),
    ("20/Nov/2026:09:05:00", "20/Nov/2026:09:05:07"),
    ("03Dec2026", "04Dec2026"),
    ("5 minutes ago", "6 minutes ago"),
    ("2分前", "3分前"),
    ("November 2026", "December 2026"),
]
LABELLED_TIMES = [
    ("Today is Monday.", "Today is Tuesday."),
    ("Good morning.", "Good evening."),
    ("Guten Morgen.", "Guten Abend."),
    ('{"now": 1795165200, "x": 1}', '{"now": 1795165260, "x": 1}'),
    ("Uptime: 3h 12m", "Uptime: 3h 13m"),
    ("Elapsed: 35 s", "Elapsed: 36 s"),
    ("Time remaining: 55 minutes", "Time remaining: 54 minutes"),
    ("Year: 2026", "Year: 2027"),
    ("T+35s", "T+36s"),
]
IDS = [
    ("20fc829c-5ec4-43a6-93f9-0d6b2f4cbd1e", "90a7db64-23ee-477b-b8f3-1c6b2f4cbd1e"),
    ("01J8ZQ4N8R7V5K2M3P9T6W1X0Y", "01J8ZQ4P1R7V5K2M3P9T6W1X0Z"),
    ("9f2c41aa7be0", "77d0be10c3f1"),
    ("req_011CTqz8m2Lf", "req_011CTqz9Xb4K"),
    ("session-abc123", "session-abd124"),
    ("V1StGXR8_Z5jdHi6B-myT", "K9xLm2Qw_Z1abHi6B-myT"),
    ("q7Zt+3xPf/Lk2Mva8Q==", "r8Au+4yQg/Ml3Nwb9R=="),
]
LABELLED_IDS = [
    ('{"message_id": "682"}', '{"message_id": "684"}'),
    ("Nonce: 8812", "Nonce: 9377"),
    ("cc_version=2.1; cch=a1b2c;", "cc_version=2.1; cch=d3e4f;"),
    ('<turn id="17">', '<turn id="18">'),
    (
        "Report the order status first.\nSession: 4f9c2b1a77d0",
        "Report the order status first.\nSession: 8a1c2b1a93e4",
    ),
]
COUNTERS = [
    ("Request #12", "Request #13"),
    ("This is turn 5/20.", "This is turn 6/20."),
    ("Step: 4", "Step: 5"),
    ("You have 12 steps left.", "You have 11 steps left."),
    ("turn 12", "turn 13"),
    ("You are at step 3 of 10.", "You are at step 4 of 10."),
    ("iteration #4", "iteration #5"),
    ("tokens left: 51200", "tokens left: 50100"),
    ("Tokens remaining: 51200", "Tokens remaining: 50100"),
    ("You have 12,345 tokens remaining", "You have 11,200 tokens remaining"),
    ("Messages so far: 14", "Messages so far: 16"),
    ("You have sent 14 messages.", "You have sent 15 messages."),
    ("remaining budget $0.53", "remaining budget $0.49"),
    ("Cost so far: $0.53", "Cost so far: $0.61"),
    ("Context used: 45%", "Context used: 47%"),
    ('"turn_count": 12,', '"turn_count": 13,'),
    ('"turnNumber": 12', '"turnNumber": 13'),
    ("<tokens_used>4123</tokens_used>", "<tokens_used>5123</tokens_used>"),
]
LABELLED_ALONE = [
    ("Current time: half past nine", "Current time: twenty to ten"),
    ("Time is 1731 beats", "Time is 1733 beats"),
    ("The current time is stardate 4523.3", "The current time is stardate 4523.7"),
    ("<current_time>half past nine</current_time>", "<current_time>ten sharp</current_time>"),
    ("Aktuelle Uhrzeit: halb zehn", "Aktuelle Uhrzeit: kurz nach zehn"),
    ("Время: половина десятого", "Время: десять"),
    ("当前时间：九点半", "当前时间：十点"),
    ("It is half past nine.", "It is ten o'clock."),
]
GROWN = [
    ("17", "18"),
    ("[17]", "[18]"),
    ("12 files and 340 lines", "13 files and 361 lines"),
]
ENVIRONMENTS = [
    ("cwd: /srv/app", "cwd: /srv/app/web"),
    ("Status:\n(clean)", "Status:\nM src/parser.txt"),
    ("Branch: main", "Branch: fix-parser"),
    ("gitStatus:\nM src/a.py", "gitStatus:\nM src/b.py"),
    ("Open files: a.py", "Open files: a.py, b.py"),
    ("<directory_listing>\na.py\nb.py", "<directory_listing>\na.py\nc.py"),
    ("Mode: plan", "Mode: act"),
    ("HEAD is 3f1a9bc", "HEAD is 77d0be1"),
    ("Selection: lines 3-9", "Selection: lines 4-9"),
    ("Free memory: 5.2 GB", "Free memory: 5.1 GB"),
]
MEMORIES = [
    ("# Recalled notes\n- prefers short answers", "# Recalled notes\n- asked about train times"),
    ("<memory>\nlikes tea\n</memory>", "<memory>\nlikes coffee\n</memory>"),
    ("Contents of AGENTS.md:\n\n# Style\n- tabs", "Contents of AGENTS.md:\n\n# Style\n- spaces"),
    ("Available skills:\n- draw", "Available skills:\n- sing"),
    ("## Memories\n- 2026-11-01: likes tea", "## Memories\n- 2026-11-03: has a dog"),
    ("<retrieved_context>\nfirst", "<retrieved_context>\nsecond"),
]
NOTHING = [
    ("Be kind.", "Be mild."),
    ("Use version 1.2.3.", "Use version 1.2.4."),
    ("Release v2026.1 is out.", "Release v2026.2 is out."),
    ("version 2026-11-20", "version 2026-11-21"),
    ("It costs $12.30 today.", "It costs $12.40 today."),
    ("The ratio 16:10 fits.", "The ratio 16:09 fits."),
    ("John 3:16 says it.", "John 3:17 says it."),
    ("Listen on port 8080.", "Listen on port 8081."),
    ("Call +49 30 1234567.", "Call +49 30 1234568."),
    ("Write at most 3 sentences.", "Write at most 4 sentences."),
    ("See section 4 below.", "See section 5 below."),
    ("Follow RFC 9110.", "Follow RFC 9111."),
    ("Allow 3 attempts.", "Allow 4 attempts."),
    ("Max tokens: 4000", "Max tokens: 8000"),
    ("Order 1234567890 is here.", "Order 1234567891 is here."),
    ("Open from Monday to Friday.", "Open from Monday to Saturday."),
    ("a marble 5 is red", "a marble 6 is red"),
    ("Use the color #112233.", "Use the color #112244."),
    ("Set read/write access.", "Set read/only access."),
    ("Files must be closed.", "Files must be opened."),
    ("Copyright 2025 by us", "Copyright 2026 by us"),
    ("Prefer claude-opus-4-5 here.", "Prefer claude-opus-4-6 here."),
    ("Guidelines\nBe brief.", "Guidelines\nBe wordy."),
    ("Token: keep short", "Token: keep long"),
    ("Price: $12.30", "Price: $12.40"),
    ("Temperature: 21.5", "Temperature: 22.0"),
    ("See step 4.", "See step 5."),
    ("max_tokens: 4000", "max_tokens: 8000"),
    ("maxTokens: 4000", "maxTokens: 8000"),
    ("Retry attempts: 3", "Retry attempts: 4"),
    ("Limit: 5 requests", "Limit: 6 requests"),
    ("Every 5 turns, sum up.", "Every 6 turns, sum up."),
    ("margin left: 3", "margin left: 4"),
    ("Turn left 5 degrees", "Turn left 6 degrees"),
    ("Population 51200", "Population 51300"),
    ("12 files and 340 lines", "13 files and 330 lines"),
    ("12 files and 340 lines", "13 files and 340 rows"),
    ("18", "17"),
    ("Time limit: two minutes", "Time limit: three minutes"),
    ("Time zone: Berlin", "Time zone: Paris"),
    ("Response time: fast", "Response time: slow"),
    ("It is 5 km to town.", "It is 6 km to town."),
    ("It is time to act.", "It is time to rest."),
    ("Now: plan", "Now: act"),
]


def _found(before: str, after: str, place: str) -> Kind | None:
    """The kind of a change at the start, in the middle or at the end of a text."""
    lead = PROSE if place != "start" else ""
    tail = "\n" + PROSE if place != "end" else ""
    return find_kind(lead + before + tail, lead + after + tail)


PLACES = pytest.mark.parametrize("place", ["start", "middle", "end"])


@PLACES
@pytest.mark.parametrize(("before", "after"), TIMES + LABELLED_TIMES)
def test_a_time_is_a_time_wherever_it_stands(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is Kind.TIME


@PLACES
@pytest.mark.parametrize(("before", "after"), IDS + LABELLED_IDS)
def test_an_id_is_an_id_wherever_it_stands(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is Kind.ID


@PLACES
@pytest.mark.parametrize(("before", "after"), COUNTERS)
def test_a_counter_is_a_counter(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is Kind.COUNTER


@PLACES
@pytest.mark.parametrize(("before", "after"), LABELLED_ALONE)
def test_a_time_in_a_form_that_no_rule_knows_is_told_by_its_label(
    before: str, after: str, place: str
) -> None:
    assert _found(before, after, place) is Kind.TIME
    told = judge_value(before, after)
    assert told is not None
    assert told.ceiling is Confidence.LIKELY


@PLACES
@pytest.mark.parametrize(("before", "after"), GROWN)
def test_numbers_that_only_grew_may_be_counters(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is Kind.COUNTER
    told = judge_value(before, after)
    assert told is not None
    assert told.ceiling is Confidence.POSSIBLE


@pytest.mark.parametrize(
    ("before", "after", "kind", "ceiling"),
    [
        ("It is 09:05 now.", "It is 09:06 now.", Kind.TIME, Confidence.CERTAIN),
        ("Current time is 15:09:20.", "Current time is 15:09:34.", Kind.TIME, Confidence.CERTAIN),
        ("Today is Monday.", "Today is Tuesday.", Kind.TIME, Confidence.CERTAIN),
        ("Year: 2026", "Year: 2027", Kind.TIME, Confidence.LIKELY),
        ("Today is 2026-11-20", "Today is 2026-11-21", Kind.TIME, Confidence.CERTAIN),
        ("2026-11-20", "2026-11-21", Kind.TIME, Confidence.LIKELY),
        ("```\n09:05 start\n```", "```\n09:06 start\n```", Kind.TIME, Confidence.LIKELY),
        ("| 09:05 | start |", "| 09:06 | start |", Kind.TIME, Confidence.LIKELY),
        (
            "https://x.org/?ts=1795165200",
            "https://x.org/?ts=1795165260",
            Kind.TIME,
            Confidence.LIKELY,
        ),
        ("report-2026-11-20.pdf", "report-2026-11-21.pdf", Kind.ENVIRONMENT, Confidence.LIKELY),
        ("/srv/2026-11-20/a", "/srv/2026-11-21/a", Kind.ENVIRONMENT, Confidence.LIKELY),
        ("Nonce 3f1a9bc2", "Nonce 8c7de1f2", Kind.ID, Confidence.CERTAIN),
        ("main.3f1a9bc2.js", "main.8c7de1f2.js", Kind.ID, Confidence.LIKELY),
        ("/tmp/a-3f1a9bc2/x", "/tmp/a-8c7de1f2/x", Kind.ID, Confidence.LIKELY),
        ("turn 12", "turn 13", Kind.COUNTER, Confidence.LIKELY),
    ],
)
def test_a_kind_is_as_sure_as_what_tells_it(
    before: str, after: str, kind: Kind, ceiling: Confidence
) -> None:
    told = judge_value(f"{PROSE}{before}", f"{PROSE}{after}")
    assert told is not None
    assert (told.kind, told.ceiling) == (kind, ceiling)


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        ('Config: {"a": 1, "b": 2} ok', 'Config: {"b": 2, "a": 1} ok', Order.MEMBERS),
        ("Config: {'a': 1, 'b': [1, 2]}", "Config: {'b': [1, 2], 'a': 1}", Order.MEMBERS),
        ('{"a": {"x": 1, "y": 2}, "b": 3}', '{"a": {"y": 2, "x": 1}, "b": 3}', Order.MEMBERS),
        ('{"a": {"x": 1}, "b": 2, "c": 3}', '{"a": {"x": 1}, "c": 3, "b": 2}', Order.MEMBERS),
        ('{"a": "x, {", "b": 1}', '{"b": 1, "a": "x, {"}', Order.MEMBERS),
        ('It\'s {"a": 1, "b": 2}, isn\'t it', 'It\'s {"b": 2, "a": 1}, isn\'t it', Order.MEMBERS),
        ("- draw\n- sing\n- dance", "- dance\n- draw\n- sing", Order.LINES),
        ("1. draw\n2. sing", "1. sing\n2. draw", Order.LINES),
        ("b: 2\na: 1\nEnd.", "a: 1\nb: 2\nEnd.", Order.LINES),
        ("Available tools: b, a, c.", "Available tools: a, c, b.", Order.NAMES),
        ("Use read_file, read_dir and grep.", "Use read_dir, grep and read_file.", Order.NAMES),
        ('Names: ["b", "a"]', 'Names: ["a", "b"]', Order.NAMES),
        ("red green blue", "blue green red", Order.NAMES),
    ],
)
def test_the_same_in_another_order_is_found_in_text(before: str, after: str, order: Order) -> None:
    assert find_order(f"{PROSE}{before}\n{PROSE}", f"{PROSE}{after}\n{PROSE}") is order


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 3}'),
        ('{"a": 1, "b": 2}', '{"b": 1, "a": 2}'),
        ('{"a": 1, "b": 2}', '{"a":1,"b":2}'),
        ('{"a": 1.0, "b": 2}', '{"b": 2, "a": 1}'),
        ('{"a": [1, 2]}', '{"a": [2, 1]}'),
        ("- draw\n- sing", "- draw\n- dance"),
        ("- draw\n- sing", "- sing\n- draw\n- dance"),
        ("Tools: a, b", "Tools: a, b, c"),
        ("Tools: a, b", "Tools: b, c"),
        ("Sizes: 3, 5", "Sizes: 5, 3"),
        ("a read only file", "a only read file"),
        ("Be kind.", "Be mild."),
        ("Be kind.", "Be kind."),
    ],
)
def test_another_value_is_no_other_order(before: str, after: str) -> None:
    assert find_order(f"{PROSE}{before}\n{PROSE}", f"{PROSE}{after}\n{PROSE}") is None


@pytest.mark.parametrize(("ahead", "order"), [(0, Order.MEMBERS), (MAX_TEXT, None)])
def test_an_object_that_begins_too_far_ahead_is_not_looked_at(
    ahead: int, order: Order | None
) -> None:
    lead = f'{{"text": "{"x" * ahead}", '
    before, after = '"a": {"x": 1, "y": 2}, "b": 2}', '"b": 2, "a": {"y": 2, "x": 1}}'
    assert find_order(lead + before, lead + after) is order


@pytest.mark.parametrize("bad", ["{" * 30_000, '"' * 30_000, "\\" * 30_000, "{'a " * 9_000])
def test_text_of_brackets_and_quotes_ends(bad: str) -> None:
    assert find_order(bad + "a", bad + "b") is None


@PLACES
@pytest.mark.parametrize(("before", "after"), ENVIRONMENTS)
def test_live_state_is_known_by_its_label_or_its_path(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is Kind.ENVIRONMENT


@PLACES
@pytest.mark.parametrize(("before", "after"), MEMORIES)
def test_recalled_text_is_known_by_its_heading(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is Kind.MEMORY


@PLACES
@pytest.mark.parametrize(("before", "after"), NOTHING)
def test_a_near_miss_is_nothing(before: str, after: str, place: str) -> None:
    assert _found(before, after, place) is None


@pytest.mark.parametrize(
    ("added", "kind"),
    [
        ("\nCurrent time: 09:05", Kind.TIME),
        ("\n## Memories\n- likes tea", Kind.MEMORY),
        ("\nOpen files: a.py", Kind.ENVIRONMENT),
        ("\nBe brief.", None),
    ],
)
def test_text_on_one_side_only_is_judged_by_what_it_says(added: str, kind: Kind | None) -> None:
    assert find_kind("Be kind.", "Be kind." + added) is kind


def test_a_heading_reaches_over_a_long_list() -> None:
    items = "".join(f"- note {n} on the garden and the gate\n" for n in range(60))
    before, after = f"# Memories\n{items}- likes tea\n", f"# Memories\n{items}- likes wine\n"
    assert find_kind(before, after) is Kind.MEMORY


def test_a_heading_ends_at_the_next_one_of_its_level() -> None:
    lead = "# Memories\n- likes tea\n\n# Rules\n"
    assert find_kind(lead + "Answer in one line.", lead + "Answer in two lines.") is None


def test_values_are_named_in_the_order_in_which_they_stand() -> None:
    before = '{"message_id":"682","timestamp":"17:41"}'
    after = '{"message_id":"684","timestamp":"17:43"}'
    assert find_kinds(before, after) == (Kind.ID, Kind.TIME)


def test_an_unknown_first_difference_is_not_passed_over() -> None:
    assert find_kinds("You are kind. Now 09:05.", "You are mild. Now 09:06.") == (None, Kind.TIME)


def test_the_changed_span_ends_where_both_texts_go_on_alike() -> None:
    # "ab" and "yz" stay: common start 2, the change is "c" against "dd".
    assert changed_span("abcyz", "abddyz") == (2, 3, 4)


def test_similarity_is_the_share_of_the_longer_text_that_stays() -> None:
    # 2 + 2 of 6 characters.
    assert similarity("abcyz", "abddyz") == pytest.approx(4 / 6)
