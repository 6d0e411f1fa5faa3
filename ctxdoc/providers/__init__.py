"""The cache rules of the providers, one file each."""

from __future__ import annotations

from ctxdoc.providers.rules import ModelRule, Provider
from ctxdoc.registry import Registry

PROVIDERS: Registry[Provider] = Registry("ctxdoc.providers", "PROVIDER", ("anthropic",))

RULES = PROVIDERS["anthropic"]
"""Those of the Claude API: every prompt that is rendered is one of its."""

__all__ = ["PROVIDERS", "RULES", "ModelRule", "Provider"]
