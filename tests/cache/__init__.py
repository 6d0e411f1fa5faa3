"""Tests of ctxdoc.cache."""
