"""Limits, baseline, builders in changed surroundings. Imports ledger and what lies below."""
