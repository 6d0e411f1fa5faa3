"""Tests of ctxdoc.reading."""
