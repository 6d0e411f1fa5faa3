"""Prices: rates of a model at a date are looked up in `rates`, and make the cost of a usage in `cost`.

Imports request and providers.
"""
