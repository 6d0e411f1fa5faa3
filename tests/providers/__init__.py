"""Tests of the providers' rules."""
