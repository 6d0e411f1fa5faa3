"""Tests of ctxdoc.reports."""
