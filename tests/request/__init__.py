"""Tests of ctxdoc.request."""
