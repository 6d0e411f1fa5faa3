"""Tests of ctxdoc.images."""
