"""Tests of ctxdoc.replay."""
