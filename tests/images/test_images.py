"""Images: tokens by size, what dropping and shrinking them costs, and files that are none."""

from __future__ import annotations

import io
import json
import math
import random
import struct
import zlib
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ctxdoc.errors import InputError
from ctxdoc.images.ask import faults_of, faults_of_many
from ctxdoc.images.file import read_picture, shrunk
from ctxdoc.images.size import TIERS, image_tokens, next_step, old_tokens, resized, smaller_sizes
from ctxdoc.request.log import Log
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.images import images_of
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.cli.test_cli import run
from tests.support.sessions import MARK, lines, prose, record
from tests.test_laws import requests_of

Body = dict[str, Any]
SIDES = st.integers(1, 6_000)
TIER = st.sampled_from(sorted(TIERS))


@pytest.mark.parametrize(
    ("width", "height", "standard", "sent", "high", "high_sent", "old"),
    [
        (200, 200, 64, (200, 200), 64, (200, 200), 53),
        (1000, 1000, 1296, (1000, 1000), 1296, (1000, 1000), 1333),
        (1092, 1092, 1521, (1092, 1092), 1521, (1092, 1092), 1590),
        (1075, 1520, 1551, (924, 1307), 2145, (1075, 1520), 2179),
        (1920, 1080, 1560, (1456, 819), 2691, (1920, 1080), 2765),
        (2000, 1500, 1564, (1269, 952), 3888, (2000, 1500), 4000),
        (3840, 2160, 1560, (1456, 819), 4784, (2576, 1449), 11059),
    ],
)
def test_the_seven_vectors(
    width: int,
    height: int,
    standard: int,
    sent: tuple[int, int],
    high: int,
    high_sent: tuple[int, int],
    old: int,
) -> None:
    """Vision and vision-coordinates pages, 2026-08-22."""
    assert image_tokens(width, height, "standard") == standard
    assert resized(width, height, "standard") == sent
    assert image_tokens(width, height, "high") == high
    assert resized(width, height, "high") == high_sent
    assert old_tokens(width, height) == old


@given(SIDES, SIDES, TIER)
def test_the_resized_size_obeys_both_limits_and_no_larger_one_does(
    width: int, height: int, tier: str
) -> None:
    edge, budget = TIERS[tier]

    def fits(one: int, two: int) -> bool:
        columns, rows = math.ceil(one / 28), math.ceil(two / 28)
        return max(columns, rows) * 28 <= edge and columns * rows <= budget

    found = resized(width, height, tier)
    assert fits(*found)
    long, short = max(width, height), min(width, height)
    if max(found) < long:
        larger = max(found) + 1
        assert not fits(larger, max(1, math.floor(larger * short / long + 0.5)))
    else:
        assert found == (width, height)


@given(SIDES, SIDES, st.integers(1, 6_000), TIER)
def test_tokens_never_grow_when_an_image_shrinks_in_its_aspect(
    width: int, height: int, edge: int, tier: str
) -> None:
    smaller = shrunk(width, height, edge, 0)
    assert max(smaller) <= edge or max(width, height) <= edge
    assert image_tokens(*smaller, tier) <= image_tokens(width, height, tier)


@given(st.integers(1, 1_092), st.integers(1, 1_092), st.integers(1, 1_092), TIER)
def test_tokens_never_grow_when_one_edge_shrinks_and_nothing_is_resized(
    width: int, height: int, shorter: int, tier: str
) -> None:
    """Up to 1,092 both sides fit as they are. Beyond the limits an image of another aspect may fill the
    budget better: 3840×2160 is 1,560 tokens, 2160×2160 is 1,521, 2300×2160 is 1,554."""
    less = image_tokens(min(width, shorter), height, tier)
    assert less <= image_tokens(width, height, tier)


@given(SIDES, SIDES, TIER)
def test_suggestions_are_the_largest_that_save_so_much(width: int, height: int, tier: str) -> None:
    whole = image_tokens(width, height, tier)
    sent = resized(width, height, tier)
    found = smaller_sizes(width, height, tier)
    assert [size.tokens for size in found] == sorted({size.tokens for size in found}, reverse=True)
    for size in found:
        assert size.tokens == image_tokens(size.width, size.height, tier)
        assert size.tokens <= 0.9 * whole
        assert size.width <= sent[0]
        assert size.height <= sent[1]
    step = next_step(width, height, tier)
    if step is not None:
        # One pixel more on the long side saves nothing.
        long, short = max(sent), min(sent)
        side = max(step.width, step.height) + 1
        other = max(1, (2 * side * short + long) // (2 * long))
        assert math.ceil(side / 28) * math.ceil(other / 28) >= whole


@given(SIDES, SIDES, st.integers(1, 3_000))
def test_shrinking_to_a_number_of_tokens_keeps_it(width: int, height: int, most: int) -> None:
    found = shrunk(width, height, 0, most)
    patches = math.ceil(found[0] / 28) * math.ceil(found[1] / 28)
    assert patches <= most or max(found) == 1
    if max(found) < max(width, height):
        # One pixel more on the long side, and its short side rounded half up, is over the limit.
        long, short = max(width, height), min(width, height)
        side = max(found) + 1
        other = max(1, (2 * side * short + long) // (2 * long))
        assert math.ceil(side / 28) * math.ceil(other / 28) > most


def picture(width: int, height: int, seed: int = 0) -> str:
    """A PNG as base64; another one for another seed."""
    stream = io.BytesIO()
    Image.new("RGB", (width, height), (seed % 256, seed // 256 % 256, 7)).save(stream, "PNG")
    return b64encode(stream.getvalue()).decode()


def screenshots(turns: int, *, text: int, size: tuple[int, int] = (1288, 800)) -> Session:
    """An agent that takes a screenshot on every turn, without counters. Opus 4.8: high resolution."""
    rng = random.Random(3)
    body: Body = {
        "model": "claude-opus-4-8",
        "max_tokens": 500,
        "system": [{"type": "text", "text": prose(rng, 6_000)}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": prose(rng, 100)}]}],
    }
    records = []
    for number in range(1, turns + 1):
        sent = json.loads(json.dumps(body))
        sent["system"][-1]["cache_control"] = dict(MARK)
        sent["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
        at = datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=10 * number)
        records.append(record(sent, at, None, number))
        name = f"toolu_{number:03d}"
        shot = {"type": "base64", "media_type": "image/png", "data": picture(*size, number)}
        body["messages"] += [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": prose(rng, text)},
                    {"type": "tool_use", "id": name, "name": "screenshot", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": name,
                        "content": [{"type": "image", "source": shot}],
                    }
                ],
            },
        ]
    return recorded_session(Log(requests=tuple(requests_of(records))))


def rows(session: Session, *texts: str) -> list[Result]:
    """Each strategy under rolling breakpoints."""
    simulation = Simulation(session)
    return [simulation.rows(parse_specs(text), [PLACEMENTS["rolling"]])[0] for text in texts]


def test_dropping_old_screenshots_on_every_turn_loses_and_shrinking_wins() -> None:
    """46 · 29 = 1,334 tokens a screenshot, and long answers: every entry ends with an image that is
    dropped on the next turn, so that all of the text is written again each time."""
    keep, drop, shrink = rows(
        screenshots(40, text=1_600), "keep", "drop_images", "shrink_images:max_edge=644"
    )
    assert keep.cost is not None
    assert drop.cost is not None
    assert shrink.cost is not None
    assert drop.cost > Decimal("1.5") * keep.cost
    assert shrink.cost < keep.cost
    assert drop.cost_without_cache < keep.cost_without_cache  # type: ignore[operator]
    # 23 · 15 = 345 tokens instead of 1,334, 39 screenshots, the k-th sent 40 − k times.
    assert keep.usage.input - shrink.usage.input == (1_334 - 345) * sum(range(1, 40))
    # The first screenshot changes the prompt ahead of the messages; the second is the first to push one out.
    assert (keep.rewrites, shrink.rewrites, drop.rewrites) == (1, 1, 1 + 38)
    assert shrink.lost == ()


def test_dropping_pays_from_the_turn_that_follows_from_the_sizes() -> None:
    """With little text dropping does pay in the end: each turn then writes w·(head of the history), and
    keeping reads r·(all of it)."""
    session = screenshots(60, text=60, size=(1_988, 1_204))
    keep, drop = rows(session, "keep", "drop_images")
    since = drop.overtaken_at(keep)
    assert since is not None
    sizes = [call.head.size + sum(m.size for m in call.messages) for call in session.calls]
    assert list(keep.prompts) == sizes
    # By hand: keeping reads the prompt before and writes what is new; dropping reads the system
    # prompt and writes all the rest, from the third request on, when the first image goes.
    ahead = theirs = 0.0
    by_hand = None
    head = session.calls[0].head.size
    for number, (full, short) in enumerate(zip(sizes, drop.prompts, strict=True), start=1):
        before = sizes[number - 2] if number > 1 else 0
        kept = 0.1 * before + 1.25 * (full - before)
        cut = kept if number < 3 else 0.1 * head + 1.25 * (short - head)
        ahead, theirs = ahead + kept, theirs + cut
        by_hand = (by_hand or number) if theirs < ahead else None
    assert since == by_hand


def test_dropping_in_batches_rewrites_less_often() -> None:
    session = screenshots(40, text=400)
    each, batch = rows(session, "drop_images", "drop_images:keep=1,batch=10")
    assert batch.rewrites < each.rewrites / 5
    assert batch.cost < each.cost  # type: ignore[operator]


def test_without_its_last_image_a_prompt_loses_what_the_api_adds_for_images() -> None:
    """Images coming or going change the prompt ahead of the messages (prompt-caching page, 2026-10-08)."""
    session = screenshots(6, text=400)
    (row,) = rows(session, "drop_images:keep=0")
    simulation = Simulation(session)
    sent = list(simulation.iter_sent(parse_specs("drop_images:keep=0"), PLACEMENTS["rolling"]))
    kinds = [[s.kind for s in each.prompt.head.segments] for each in sent]
    assert all("setting" not in row for row in kinds)
    results = [m.size for m in session.calls[-1].messages if m.results]
    assert row.lost_tokens == sum(results)
    assert len(results) == 5
    assert min(results) > 1_334


def test_images_of_a_log_have_a_life() -> None:
    """Three requests, each with one screenshot more: the first is sent twice, the second once."""
    session = screenshots(3, text=200)
    usages = Simulation(session).usages(parse_specs("keep"), PLACEMENTS["recorded"])
    first, second = images_of(session, usages)
    assert (first.request, first.times, first.tokens) == (2, 2, 1_334)
    assert (second.request, second.times) == (3, 1)
    assert first.same_as is None
    # Opus 4.8: written once at 6.25, read once at 0.50 USD per million.
    assert first.cost == pytest.approx(
        Decimal(1_334) * Decimal("6.75") / 10**6, rel=Decimal("0.01")
    )


def test_the_same_image_is_named(tmp_path: Path) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": picture(56, 56)},
    }
    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": [image, image, {"type": "text", "text": "?"}]}],
    }
    path = tmp_path / "a.jsonl"
    path.write_text(lines([record(body, datetime(2026, 11, 2, tzinfo=UTC), None, 1)]))
    found = json.loads(run("image", str(path), "--format", "json").stdout)["images"]
    assert [(row["tokens"], row["same_as"]) for row in found] == [(4, None), (4, 1)]
    shown = run("image", str(path)).stdout.decode()
    assert "bytes of" in shown
    assert shown.count("#1") >= 3


def test_a_size_says_what_it_costs() -> None:
    """Sonnet 4.5: 1,560 tokens are 0.00468 USD, 0.00585 to write, 0.000468 to read."""
    words = ("image", "1920x1080", "--model", "claude-sonnet-4-5")
    (found,) = json.loads(run(*words, "--format", "json").stdout)["images"]
    assert list(found)[:12] == [
        "source", "width", "height", "model", "tier", "sent_width", "sent_height", "tokens",
        "tokens_old_rule", "cost", "write_cost", "per_turn_cost_cached",
    ]  # fmt: skip
    assert (found["cost"], found["write_cost"], found["per_turn_cost_cached"]) == (
        "0.00468",
        "0.00585",
        "0.000468",
    )
    text = run(*words, "--turns", "11").stdout.decode()
    # 0.00585 + 10 · 0.000468 = 0.01053; 11 · 0.00468 = 0.05148
    assert "over 11 turns $0.0105, without a cache $0.0515" in " ".join(text.split())
    assert "nothing is saved down to 1,445 px" in " ".join(text.split())


def written(path: Path, kind: str, **how: Any) -> Path:
    """An image file."""
    Image.new("RGB", (64, 32), (1, 2, 3)).save(path, kind, **how)
    return path


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_files_of_every_kind(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / "image.bin", kind)
    (found,) = json.loads(run("image", str(path), "--format", "json").stdout)["images"]
    assert (found["width"], found["height"], found["tokens"], found["kind"]) == (64, 32, 6, kind)
    url = f"data:image/{kind.lower()};base64,{b64encode(path.read_bytes()).decode()}"
    (same,) = json.loads(run("image", url, "--format", "json").stdout)["images"]
    assert same["tokens"] == 6


def test_files_that_move_or_are_turned_or_are_misnamed_say_so(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (64, 32), (n, 0, 0)) for n in (1, 200)]
    moving = tmp_path / "a.gif"
    frames[0].save(moving, "GIF", save_all=True, append_images=frames[1:])
    assert b"it moves" in run("image", str(moving)).stdout
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = written(tmp_path / "b.jpg", "JPEG", exif=exif)
    assert b"turn it by a quarter" in run("image", str(turned)).stdout
    misnamed = written(tmp_path / "c.png", "JPEG")
    assert b"named .png, but it is a JPEG" in run("image", str(misnamed)).stdout


def huge_png(width: int, height: int) -> bytes:
    """The header of a PNG of that size, with next to no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "name", "code", "said"),
    [
        (huge_png(100_000, 1), "a.png", 0, b"a side is over 8,000 pixels"),
        (huge_png(60_000, 60_000), "a.png", 0, b"a side is over 8,000 pixels"),
        (huge_png(0, 0), "a.png", 2, b"nothing was analysed"),
        (huge_png(64, 64)[:20], "a.png", 2, b"no image that can be read"),
        (b"", "a.png", 2, b"no image that can be read"),
        (b"BM" + b"\0" * 60, "a.bmp", 2, b"nothing was analysed"),
        (b"%PDF-1.7\nnothing", "a.pdf", 2, b"no PDF that can be read"),
        (b"GIF89a", "a.gif", 2, b"no image that can be read"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a.jpg", 2, b"no image that can be read"),
        (b"RIFF\0\0\0\0WEBP", "a.webp", 2, b"no image that can be read"),
    ],
)
def test_hostile_files_end_with_a_message(
    data: bytes, name: str, code: int, said: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    ended = run("image", str(path))
    assert ended.returncode == code, ended.stderr
    assert said in ended.stdout + ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_files_that_are_cut_or_changed_are_read_or_named(kind: str) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (64, 32), (1, 2, 3)).save(stream, kind)
    whole = stream.getvalue()
    rng = random.Random(kind)
    for _ in range(150):
        data = bytearray(whole[: rng.randrange(len(whole))])
        for _ in range(rng.randrange(3)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            found = read_picture(bytes(data))
        except InputError:
            continue
        # A header is whole or it is not: what is cut off behind it changes nothing.
        assert found.kind == kind or data[:8] != whole[:8]


def test_a_decompression_bomb_is_not_decoded() -> None:
    """3.6 thousand million pixels, read from the header alone."""
    found = read_picture(huge_png(60_000, 60_000))
    assert (found.width, found.height) == (60_000, 60_000)
    assert list(faults_of(found)) == ["a side is over 8,000 pixels: the API refuses it"]


def test_the_limits_of_a_request_are_warned_of() -> None:
    """Vision page, 2026-08-22: 100 or 600 images; more than 20 only up to 2,000 pixels; 10 MB each."""
    small = read_picture(huge_png(100, 100))
    large = read_picture(huge_png(2_001, 10))
    assert list(faults_of_many([small] * 101, large_window=True)) == []
    assert len(list(faults_of_many([small] * 101, large_window=False))) == 1
    assert len(list(faults_of_many([small] * 601, large_window=True))) == 1
    heaviest = small._replace(size=6_000_000)
    assert list(faults_of_many([heaviest] * 4, large_window=True)) == []
    assert "of a request" in next(faults_of_many([heaviest] * 5, large_window=True))
    assert list(faults_of_many([large] * 20, large_window=True)) == []
    assert len(list(faults_of_many([small] * 20 + [large], large_window=True))) == 1
    heavy = small._replace(size=7_600_000)
    assert "over 10,000,000" in next(iter(faults_of(heavy)))
    assert "Bedrock" in next(iter(faults_of(small._replace(size=4_000_000))))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0x5",), b"at least one pixel"),
        (("nowhere.png",), b"cannot read nowhere.png"),
        (("nowhere.jsonl",), b"cannot read nowhere.jsonl"),
        (("12x12", "fixtures/logs/session.jsonl"), b"logs and images at once"),
        (("fixtures/logs/session.jsonl", "--plot", "a.png"), b"name a size or a file"),
        (("fixtures/logs/session.jsonl", "--turns", "3"), b"goes with sizes and files"),
        (("data:text/plain,hi",), b"no image that can be read"),
        (("data:image/png;base64,AAAA",), b"no image that can be read"),
        (("12x12", "--model", "claude-sonet-4-5"), b"did you mean claude-sonnet-4-5"),
    ],
)
def test_a_mistake_is_named(words: tuple[str, ...], said: bytes) -> None:
    ended = run("image", *words)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_pdf_is_counted_by_its_pages(tmp_path: Path) -> None:
    """Two pages: 3,000 to 6,000 tokens of text, and 4,784 at most for each page's image."""
    from pypdf import PdfWriter

    writer = PdfWriter()
    for _ in range(2):
        writer.add_blank_page(612, 792)
    path = tmp_path / "a.pdf"
    with path.open("wb") as stream:
        writer.write(stream)
    (found,) = json.loads(run("image", str(path), "--format", "json").stdout)["images"]
    assert (found["pages"], found["tokens_at_least"], found["tokens_at_most"]) == (2, 3_000, 15_568)
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("model", "warned"), [("claude-haiku-4-5", True), ("claude-opus-4-8", False)]
)
def test_pages_are_limited_by_the_window(tmp_path: Path, model: str, warned: bool) -> None:
    """100 pages with the window of 200,000 tokens, 600 otherwise (pdf-support page, 2026-08-22)."""
    from pypdf import PdfWriter

    writer = PdfWriter()
    for _ in range(101):
        writer.add_blank_page(612, 792)
    path = tmp_path / "a.pdf"
    with path.open("wb") as stream:
        writer.write(stream)
    (found,) = json.loads(run("image", str(path), "--model", model, "--format", "json").stdout)[
        "images"
    ]
    assert bool(found["warnings"]) is warned


def test_a_file_is_read_from_standard_input() -> None:
    data = b64decode(picture(56, 57))
    (found,) = json.loads(run("image", "-", "--format", "json", stdin=data).stdout)["images"]
    assert (found["width"], found["height"], found["tokens"]) == (56, 57, 2 * 3)
    whole = run("image", "-", stdin=Path("fixtures/logs/session.jsonl").read_bytes())
    assert b"no request of the log holds an image" in whole.stdout


def test_beyond_the_limits_every_size_costs_the_same() -> None:
    """3000 × 2000 in the standard tier becomes 1,456 × 971 or so: 52 · 35 are too many patches, and the
    curve is flat from where the API begins to resize."""
    from ctxdoc.images.ask import AskedImage
    from ctxdoc.providers import find_model
    from ctxdoc.reports.bill import Bill
    from ctxdoc.reports.image_curve import curve_of

    rule = find_model("claude-opus-4-8")
    bill = Bill(model=rule.id, rule=rule, rates=None, turns=1)
    (panel,) = curve_of([AskedImage(source="", width=3_000, height=2_000)], bill).panels
    for curve in panel.curves[:2]:
        top = curve.ys[-1]
        flat = curve.ys[curve.ys.index(top) :]
        assert len(set(flat[1:])) == 1
        assert max(curve.ys) <= top + 60


def test_a_log_without_images_says_so() -> None:
    assert (
        b"no request of the log holds an image"
        in run("image", "fixtures/logs/session.jsonl").stdout
    )


def test_the_steps_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "steps.svg"
    assert run("image", "1280x800", "--plot", str(path)).returncode == 0
    text = path.read_text()
    for label in ("standard resolution", "high resolution", "old rule", "pixels of the long side"):
        assert label in text
