"""Tests of ctxdoc.cli."""
