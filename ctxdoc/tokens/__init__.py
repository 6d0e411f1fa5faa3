"""Sizes of prompts and blocks: reported, calibrated, estimated. Imports prompt and images."""
