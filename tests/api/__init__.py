"""Tests of ctxdoc.api."""
