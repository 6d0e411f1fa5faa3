"""Tests of ctxdoc.record."""
