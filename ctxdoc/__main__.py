"""Runs ctxdoc as `python -m ctxdoc`."""

from ctxdoc.cli.app import main

main()
