"""Tests of ctxdoc.gate."""
