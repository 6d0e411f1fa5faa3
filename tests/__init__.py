"""The tests of ctxdoc."""
