"""The tests of the log formats."""
