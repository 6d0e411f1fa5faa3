"""What a provider states about its cache and its models."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

LARGE_WINDOW = 1_000_000
"""Tokens of the larger of the two windows that models have (context-windows page, 2026-10-08)."""


class ModelRule(Struct, frozen=True, kw_only=True):
    """One model's row: limits in tokens, each with its source and date."""

    id: str
    minimum: int
    """The smallest cacheable prefix."""
    minimum_assumed: bool = False
    bedrock_minimum: int | None = None
    """The same on Bedrock, where it differs (facts 7.1, 2026-10-07)."""
    window: int
    image_tier: str
    tokenizer: str
    default_effort: str = "high"
    keeps_thinking: bool
    """Whether thinking of earlier turns stays in the prompt after a new user text."""
    binds_thinking: bool = False
    """Whether a thinking block is refused behind a prefix that the client has changed
    (preserved-thinking page, 2026-10-08; Fable 5.2: articles of 2026-11-09)."""
    tool_prompt: int = 0
    """Hidden tokens that tool use adds with a free tool choice; 0 where not listed."""
    source: str
    date: str
    known: bool = True

    @property
    def has_large_window(self) -> bool:
        """Whether it has the larger of the two windows, on which other limits rest."""
        return self.window >= LARGE_WINDOW


class Provider(Struct, frozen=True, kw_only=True, dict=True):
    """A provider's cache rules and models."""

    id: str
    lookback: int
    """Positions looked at from a breakpoint back, itself included."""
    max_breakpoints: int
    ttl_seconds: dict[str, int]
    run_kinds: frozenset[str]
    """A run of blocks of one of these kinds is one position of the lookback."""
    feature_tools: tuple[str, ...]
    """Beginnings of the types of tools that are rendered ahead of the system prompt."""
    unmarkable: frozenset[str]
    """Blocks that cannot carry a breakpoint."""
    host: str
    """The provider's own host."""
    billing_line: str
    """Beginning of a first system block that the provider's own host removes."""
    data: str
    """File of model rows beside this module."""

    @cached_property
    def models(self) -> dict[str, ModelRule]:
        """The rows by id."""
        text = (Path(__file__).parent / self.data).read_text(encoding="utf-8")
        rows = msgspec.convert(tomllib.loads(text)["model"], list[ModelRule])
        return {row.id: row for row in rows}

    def covers(self, name: str) -> bool:
        """Whether a model is one of the provider's, be it a new one; a request may name none."""
        return self.find_model(name).known or "claude" in name or not name

    def find_model(self, name: str) -> ModelRule:
        """The row of a model by any of its spellings.

        An unknown model gets a row marked as such, with the middle minimum of the known ones.
        """
        short = short_model_id(name)
        row = self.models.get(short)
        if row is not None:
            other = row.bedrock_minimum if _BEDROCK.match(name) else None
            return row if other is None else replace(row, minimum=other)
        return ModelRule(
            id=short,
            minimum=1024,
            minimum_assumed=True,
            window=200_000,
            image_tier="standard",
            tokenizer="older",
            keeps_thinking=True,
            source="assumed",
            date="2026-11-29",
            known=False,
        )


_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?anthropic\.claude|^arn:aws")
"""How Bedrock spells a model."""
_PREFIX = re.compile(r"^(?:.*/)?(?:(?:us|eu|apac|jp|au|global)\.)?(?:anthropic\.)?", re.ASCII)
_SUFFIX = re.compile(
    r"(?:\[1m\]|-v\d+(?::\d+)?|[@-]\d{8}|-latest|@latest|:\w+|(?<=-4)-0)+$", re.ASCII
)


_VERSION_FIRST = re.compile(r"^claude-([4-9](?:[.-]\d)?)-([a-z]+)$")
"""How routers spell models from 4 on: claude-4.5-haiku."""


@lru_cache(maxsize=256)
def short_model_id(name: str) -> str:
    """A model id without vendor, region, date, version and `[1m]`: one name for one model."""
    short = _SUFFIX.sub("", _PREFIX.sub("", name.strip()))
    short = _VERSION_FIRST.sub(r"claude-\2-\1", short)
    return short.replace(".", "-") if short.startswith("claude-") else short
