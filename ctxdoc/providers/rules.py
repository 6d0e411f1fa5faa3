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
    provider: Provider | None = None
    """Set on every row that `Provider.find_model` gives."""

    @property
    def rules(self) -> Provider:
        """The rules of the provider's cache."""
        assert self.provider is not None
        return self.provider

    @property
    def has_large_window(self) -> bool:
        """Whether it has the larger of the two windows, on which other limits rest."""
        return self.window >= LARGE_WINDOW


class Provider(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A provider's cache rules and models."""

    id: str
    names: str
    """Regular expression of the names of its models, new ones too."""
    ttl_seconds: dict[str, int]
    """Seconds that an entry lives, by the lifetime's name; the first is the one by default."""
    automatic: bool = False
    """Whether every prompt is cached without breakpoints, from its start in whole steps."""
    granule: int = 1
    """Tokens of such a step."""
    charges_writes: bool = True
    """Whether what is written has a price, and counters, of its own; otherwise it is plain input."""
    lookback: int = 0
    """Positions looked at from a breakpoint back, itself included."""
    max_breakpoints: int = 0
    run_kinds: frozenset[str] = frozenset()
    """A run of blocks of one of these kinds is one position of the lookback."""
    data: str
    """File of model rows, and of prices that the library lacks, beside this module."""

    @cached_property
    def _tables(self) -> dict[str, list[object]]:
        text = (Path(__file__).parent / self.data).read_text(encoding="utf-8")
        return tomllib.loads(text)

    @cached_property
    def models(self) -> dict[str, ModelRule]:
        """The rows by id."""
        rows = msgspec.convert(self._tables["model"], list[ModelRule])
        return {row.id: replace(row, provider=self) for row in rows}

    @property
    def prices(self) -> list[object]:
        """The rows of prices, as the data file has them."""
        return self._tables.get("price", [])

    @property
    def default_ttl(self) -> str:
        """The name of the lifetime that an entry has where none is asked for."""
        return next(iter(self.ttl_seconds))

    def seconds(self, ttl: str | None) -> int:
        """Seconds that an entry of a lifetime lives; None is the one by default."""
        return self.ttl_seconds[ttl or self.default_ttl]

    @property
    def shortest(self) -> int:
        """Seconds of its shortest lifetime."""
        return min(self.ttl_seconds.values())

    @property
    def longest(self) -> int:
        """Seconds of its longest lifetime."""
        return max(self.ttl_seconds.values())

    def readable(self, tokens: int) -> int:
        """Tokens of a beginning that can be read, of so many: whole steps."""
        return tokens - tokens % self.granule

    def covers(self, name: str) -> bool:
        """Whether a model is one of the provider's, be it a new one."""
        return short_model_id(name) in self.models or bool(re.search(self.names, name))

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
            provider=self,
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
