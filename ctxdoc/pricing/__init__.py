"""Rates of a model at a date, and the cost of a usage. Imports request and providers."""
