"""The model and the rates that the price of an image is told for."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from ctxdoc.images.ask import AskedImage
from ctxdoc.images.size import image_tokens
from ctxdoc.pricing.rates import MILLION
from ctxdoc.pricing.table import Rates
from ctxdoc.providers import ModelRule


class Bill(Struct, frozen=True, kw_only=True):
    """The model that prices are for, and how often an image is sent."""

    model: str
    rule: ModelRule
    rates: Rates | None
    turns: int

    def cost(self, tokens: int, rate: Decimal | None) -> Decimal | None:
        """USD for so many tokens."""
        return None if rate is None else tokens * rate / MILLION

    def tokens(self, image: AskedImage) -> int:
        """Tokens that the model counts for an image."""
        return image_tokens(image.width, image.height, self.rule.image_tier)
