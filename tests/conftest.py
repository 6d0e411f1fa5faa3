"""How the property tests run: no time limit on a machine that others share, and the same examples
every time in CI."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ctxdoc", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("ctxdoc")
