"""The options of `ctxdoc image` by what they change."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.support.options import (
    LOG,
    shows,
)
from tests.support.program import call


@shows("--turns", "image")
def test_turns_price_the_turns_that_send_it_again() -> None:
    assert "over 10 turns" in call("image", "57x57").out
    assert "over 3 turns" in call("image", "57x57", "--turns", "3").out
    for words in (("57x57", "--turns", "0"), (LOG, "--turns", "3")):
        ended = call("image", *words)
        assert (ended.code, ended.out) == (2, "")


def test_a_picture_has_its_size(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    call("image", "57x57", "--plot", path)
    with Image.open(path) as picture:
        assert picture.size == (800, 600)
