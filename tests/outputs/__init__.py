"""Tests of ctxdoc.outputs."""
