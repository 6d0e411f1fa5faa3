"""pytest: `assert_stable_prefix(build)` and `assert_cache_alive(log)`.

The plugin costs nothing where it is not used: everything heavy is imported by the fixtures' calls.

    def test_the_prefix_is_stable(assert_stable_prefix):
        assert_stable_prefix(myagent.prompts.build)

    @pytest.mark.ctxdoc(baseline="prefix.lock.json", allow=["tool_set_changed"])
    def test_the_recorded_session_reads_its_cache(assert_cache_alive):
        assert_cache_alive("tests/recorded.jsonl")
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ctxdoc.gate import Gated
    from ctxdoc.settings import GateSettings

MARKER = (
    "ctxdoc(**settings): what assert_stable_prefix and assert_cache_alive allow in this test, as in "
    "[tool.ctxdoc.gate]: allow, fail_on, skip, timeout, baseline, min_hit_ratio, ..."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that writes baselines."""
    parser.getgroup("ctxdoc").addoption(
        "--ctxdoc-update-baseline",
        action="store_true",
        help="Write the baselines of stable prefixes as they are now.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def assert_stable_prefix(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Fails unless a function returns the same prefix however its surroundings change.

    The function takes no argument and returns a request body, or several. One that can be imported is called
    in fresh interpreters; another one again in this process.
    """

    def check(build: Callable[[], Any], **settings: Any) -> None:
        from ctxdoc.gating import baseline_of, gate_function

        found = _settings(request, settings)
        folder, update = request.config.rootpath, _updates(request)
        lock = baseline_of(found, folder, update=update)
        _judge(request, found, lambda: gate_function(build, found, folder, lock))

    return check


@pytest.fixture
def assert_cache_alive(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Fails when a recorded log lost its prefix to something unstable, or breaks another limit."""

    def check(*logs: str | Path, **settings: Any) -> None:
        from ctxdoc.gating import baseline_of, gate_log
        from ctxdoc.load import read_log

        paths = [str(path) for path in logs]
        found = _settings(request, {**settings, "logs": paths})
        lock = baseline_of(found, request.config.rootpath, update=_updates(request))
        _judge(
            request, found, lambda: gate_log(lambda: read_log(paths, condense=True), found, lock)[0]
        )

    return check


def _settings(request: pytest.FixtureRequest, given: dict[str, Any]) -> GateSettings:
    from ctxdoc.settings import settings_of

    marks = [dict(mark.kwargs) for mark in request.node.iter_markers("ctxdoc")]
    values: dict[str, Any] = {}
    for each in (*reversed(marks), given):
        values.update(each)
    return settings_of(values, "the marker ctxdoc")


def _updates(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--ctxdoc-update-baseline"))


def _judge(
    request: pytest.FixtureRequest, settings: GateSettings, run: Callable[[], Gated]
) -> None:
    from ctxdoc.errors import CtxdocError
    from ctxdoc.gate import Verdict
    from ctxdoc.gating import shareable, updated
    from ctxdoc.outputs import OUTPUTS, Style
    from ctxdoc.reports.gate import gate_report

    try:
        gated = run()
    except CtxdocError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        pytest.fail(f"ctxdoc could not check: {error.message}{hint}", pytrace=False)
    if _updates(request) and settings.baseline is not None:
        path = request.config.rootpath / settings.baseline
        gated = updated(gated, path.write_bytes)
        shareable(path)
    if gated.verdict is not Verdict.HELD:
        pytest.fail(OUTPUTS["text"].write(gate_report(gated), Style()), pytrace=False)
