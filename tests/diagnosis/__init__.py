"""Tests of ctxdoc.diagnosis."""
