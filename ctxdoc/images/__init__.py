"""Pixels and patches of images. Imports request and providers."""
