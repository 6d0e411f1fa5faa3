"""pytest: `assert_stable_prefix(build)` and `assert_cache_alive(log)`.

The plugin costs nothing where it is not used: everything heavy is imported by the fixtures' calls.

    def test_the_prefix_is_stable(assert_stable_prefix):
        assert_stable_prefix(myagent.prompts.build)

    @pytest.mark.ctxdoc(baseline="prefix.lock.json", allow=["tool_set_changed"])
    def test_the_recorded_session_reads_its_cache(assert_cache_alive):
        assert_cache_alive("tests/recorded.jsonl")
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ctxdoc.gate.outcome import GateOutcome
    from ctxdoc.gate.settings import GateSettings

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
        from ctxdoc.gate.run import IN_PROCESS, baseline_of, gate_function

        def run(found: GateSettings) -> GateOutcome:
            folder = request.config.rootpath
            lock = baseline_of(found, folder, update=_updates(request))
            gated = gate_function(build, found, folder, lock)
            if IN_PROCESS in gated.not_checked:
                warnings.warn(f"ctxdoc: {IN_PROCESS}", stacklevel=2)
            return gated

        _judge(request, settings, run)

    return check


@pytest.fixture
def assert_cache_alive(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Fails when a recorded log lost its prefix to something unstable, or breaks another limit."""

    def check(*logs: str | Path, **settings: Any) -> None:
        from ctxdoc.gate.run import baseline_of, gate_log
        from ctxdoc.reading.load import read_log

        paths = [str(path) for path in logs]

        def run(found: GateSettings) -> GateOutcome:
            lock = baseline_of(found, request.config.rootpath, update=_updates(request))
            return gate_log(lambda: read_log(paths, condense=True), found, lock)[0]

        _judge(request, {**settings, "logs": paths}, run)

    return check


SOURCES = ("logs", "command", "import", "baseline")
"""Settings of pyproject.toml that a test has of its own."""


def _settings(request: pytest.FixtureRequest, given: dict[str, Any]) -> GateSettings:
    """The table of pyproject.toml, the markers from the outermost on, and what the call says."""
    from ctxdoc.gate.settings import read_settings, settings_of

    table, _ = read_settings(request.config.rootpath)
    values: dict[str, Any] = {k: v for k, v in table.items() if k not in SOURCES}
    # The nearest marker wins: the one of the test over those of its class and module.
    for mark in reversed(list(request.node.iter_markers("ctxdoc"))):
        values.update(mark.kwargs)
    named = {name.replace("_", "-"): value for name, value in {**values, **given}.items()}
    return settings_of(named, "the settings of assert_stable_prefix and assert_cache_alive")


def _updates(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--ctxdoc-update-baseline"))


def _judge(
    request: pytest.FixtureRequest,
    given: dict[str, Any],
    run: Callable[[GateSettings], GateOutcome],
) -> None:
    """Fails the test with the gate's report, unless it holds."""
    text = _fault(request, given, run)
    if text:
        pytest.fail(text, pytrace=False)


def _fault(
    request: pytest.FixtureRequest,
    given: dict[str, Any],
    run: Callable[[GateSettings], GateOutcome],
) -> str:
    from ctxdoc.errors import CtxdocError
    from ctxdoc.gate.outcome import Verdict
    from ctxdoc.outputs import OUTPUTS, Style
    from ctxdoc.reports.gate import gate_report

    try:
        settings = _settings(request, given)
        gated = run(settings)
        if _updates(request) and settings.baseline is not None:
            gated = _written(request, gated, request.config.rootpath / settings.baseline)
    except CtxdocError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        return f"ctxdoc could not check: {error.message}{hint}"
    if gated.verdict is Verdict.HELD:
        return ""
    return OUTPUTS["text"].write(gate_report(gated), Style())


WRITTEN = pytest.StashKey[set[Path]]()
"""Baselines that this run has written: another test of the same file adds to it."""


def _written(request: pytest.FixtureRequest, gated: GateOutcome, path: Path) -> GateOutcome:
    from ctxdoc.errors import InputError
    from ctxdoc.gate.baseline import read_lock
    from ctxdoc.gate.run import shareable, updated

    done = request.config.stash.setdefault(WRITTEN, set())
    beside = read_lock(path) if path in done else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        gated = updated(gated, path.write_bytes, beside)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    done.add(path)
    shareable(path)
    return gated
