"""Tests of ctxdoc.pricing."""
