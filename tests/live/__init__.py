"""Tests of ctxdoc.live."""
