"""Makers of sessions and stand-ins for the API that the tests share."""
