"""Pixels and patches of images. Imports request."""
