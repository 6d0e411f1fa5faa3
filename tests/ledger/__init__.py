"""Tests of ctxdoc.ledger."""
