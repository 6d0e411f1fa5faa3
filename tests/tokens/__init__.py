"""Tests of ctxdoc.tokens."""
