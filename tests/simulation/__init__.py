"""Tests of ctxdoc.simulation."""
