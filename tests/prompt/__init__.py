"""Tests of ctxdoc.prompt."""
