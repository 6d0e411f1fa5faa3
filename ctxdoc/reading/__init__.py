"""Bytes become requests: files, formats, message threads. Imports request."""
