"""The cache rules of the providers, one file each."""

from __future__ import annotations

from ctxdoc.providers.rules import ModelRule, Provider
from ctxdoc.registry import Registry

PROVIDERS: Registry[Provider] = Registry("ctxdoc.providers", "PROVIDER", ("anthropic",))

__all__ = ["PROVIDERS", "ModelRule", "Provider"]
