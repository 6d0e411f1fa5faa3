"""What each provider states about its cache and its models: a module and a table of data each.

Imports registry only.
"""

from __future__ import annotations

from functools import lru_cache

from ctxdoc.providers.rules import ModelRule, Provider
from ctxdoc.registry import Registry

PROVIDERS: Registry[Provider] = Registry("ctxdoc.providers", "PROVIDER", ("anthropic",))

BY_DEFAULT = "anthropic"
"""The provider by whose rules a body is looked at whose model none of them states: the one that the form
of the body is from."""


@lru_cache(maxsize=256)
def provider_of(model: str) -> Provider:
    """The provider whose rules hold for a model, by any of its spellings."""
    return next((each for each in PROVIDERS if each.covers(model)), PROVIDERS[BY_DEFAULT])


@lru_cache(maxsize=256)
def find_model(model: str) -> ModelRule:
    """The row of a model by any of its spellings; one that is assumed where none states it."""
    return provider_of(model).find_model(model)


@lru_cache(maxsize=256)
def are_rules_known(model: str) -> bool:
    """Whether a provider states the rules for a model; a request may name none."""
    return any(each.covers(model) for each in PROVIDERS)


__all__ = ["PROVIDERS", "ModelRule", "Provider", "are_rules_known", "find_model", "provider_of"]
