"""Sizes of prompts and blocks: reported, calibrated, estimated. Imports prompt, images and providers."""
