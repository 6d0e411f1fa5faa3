"""Runs a request builder in changed surroundings: the same program should give the same prefix.

The first run is the reference. Then everything around the program is changed at once, a few times; only
when a body differs is each surrounding changed alone, to find the one that it depends on.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ctxdoc.errors import CtxdocError, InputError, UncheckedError
from ctxdoc.reading.load import read_bodies
from ctxdoc.request.request import Request

MOST_BYTES = 64_000_000
"""Of what a builder prints."""
TELL_SECONDS = 0.02
"""Between two looks at a running builder."""
LAST_WORDS = 100
"""Characters of a builder's error that are repeated."""
SEEDS = ("1", "2", "3", "4")
"""Of Python's hash function: a set of two items is in the same order in all of them once in 16 programs."""
FAKETIME = (
    "libfaketime.so.1",
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
    "/opt/homebrew/lib/faketime/libfaketime.1.dylib",
)
HOUR = timedelta(hours=1, minutes=1)
MOST_FILES = 20_000
"""Of a folder that is built up elsewhere."""
MOST_COPIED = 200_000_000
"""Bytes that are copied where files cannot be linked."""
LINKED = frozenset({".git", ".hg", ".venv", "venv", "node_modules", ".tox", "__pycache__"})
"""Folders that are linked as a whole: nothing in them is read into a prompt."""
TWICE = 2
"""Further runs with nothing changed, before a surrounding is named as what a prefix depends on."""


class Scene(Struct, frozen=True, kw_only=True):
    """What a program finds when it is started."""

    environment: dict[str, str]
    folder: Path
    wait: bool = False
    """Whether a second passes before."""


class Surrounding(Struct, frozen=True, kw_only=True):
    """Something around a program that may change without any effect on its prefix."""

    id: str
    title: str
    change: Callable[[Scene, Path], Scene | None]
    """The scene with it changed; None where this machine cannot. The path is an empty folder."""
    advice: str
    """What to do about a prefix that depends on it."""


class Run(Struct, frozen=True):
    """The bodies that a builder printed."""

    requests: tuple[Request, ...]


class Failed(Struct, frozen=True):
    """A builder that gave none."""

    why: str


class Builder:
    """A program that prints the body of a request, or several, a line each."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        folder: Path,
        paths: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`paths` are search paths of its environment."""
        self.command = tuple(command)
        self.timeout = timeout
        self.folder = folder
        self.paths = {name: os.pathsep.join(parts) for name, parts in (paths or {}).items()}

    @property
    def scene(self) -> Scene:
        """The surroundings as they are, with Python's hash function fixed."""
        environment = {**os.environ, **self.paths, "PYTHONHASHSEED": "0"}
        # With another HOME, what the user installed is still found.
        environment.setdefault("PYTHONUSERBASE", str(Path("~/.local").expanduser()))
        return Scene(environment=environment, folder=self.folder)

    def reference(self) -> Run:
        """The first run.

        Raises InputError for a program that cannot be started, UncheckedError for one that fails, hangs or
        prints no body.
        """
        return self._run(self.scene)

    def run(self, scene: Scene) -> Run | Failed:
        """A further run."""
        if scene.wait:
            wait_a_second()
        try:
            return self._run(scene)
        except CtxdocError as error:
            return Failed(error.message)

    def _run(self, scene: Scene) -> Run:
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
            code = self._wait(self._started(scene, said, complained), (said, complained))
            if code:
                why = f"the builder ended with {_code(code)}{_last_words(complained)}"
                raise UncheckedError(why, "run it by hand; it has to give a request body")
            said.seek(0)
            data = said.read()
        if not data.strip():
            raise UncheckedError("the builder printed nothing", "it has to print a request body")
        try:
            return Run(read_bodies(data, "builder"))
        except CtxdocError as error:
            raise UncheckedError(
                f"the builder printed no request body ({error.message})",
                "it has to print one body as JSON, or one a line, and nothing else",
            ) from error

    def _started(
        self, scene: Scene, said: IO[bytes], complained: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.command,
                cwd=scene.folder,
                env=scene.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"cannot start {self.command[0]}: {reason}",
                "no shell runs the command: for && and variables write --command \"sh -c '…'\"",
            ) from error

    def _wait(self, process: subprocess.Popen[bytes], outputs: Sequence[IO[bytes]]) -> int:
        """Its exit code; ends it when it takes too long or prints too much."""
        end = time.monotonic() + self.timeout
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(TELL_SECONDS)
                if time.monotonic() > end:
                    raise UncheckedError(
                        f"the builder did not end in {self.timeout:g} s", "--timeout allows more"
                    )
                if any(os.fstat(output.fileno()).st_size > MOST_BYTES for output in outputs):
                    raise UncheckedError(f"the builder printed over {MOST_BYTES:,} bytes")
        finally:
            # Whatever it started ends with it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_a_second() -> None:
    """Waits until the clock shows another second, and a little longer."""
    time.sleep(1.1 - time.time() % 1)


def called(build: Callable[[], Any], *, wait: bool = False) -> Run:
    """The bodies that a function of this process returns; with `wait` a second later.

    Raises UncheckedError for a function that fails or returns none.
    """
    from ctxdoc.gate.child import bodies_of

    if wait:
        wait_a_second()
    try:
        texts = bodies_of(build())
    except Exception as error:
        raise UncheckedError(
            f"the builder failed: {type(error).__name__}", "call it by hand"
        ) from error
    try:
        return Run(read_bodies("\n".join(texts).encode("utf-8", "surrogatepass"), "builder"))
    except CtxdocError as error:
        raise UncheckedError(
            f"the builder returned no request body ({error.message})",
            "it has to return one body as a dict, or a list of them",
        ) from error


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_words(complained: IO[bytes]) -> str:
    """The end of its error output, short, and without what may be a key."""
    size = complained.seek(0, os.SEEK_END)
    complained.seek(max(0, size - 4096))
    lines = complained.read().decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return ""
    said = next((line for line in reversed(lines) if ERROR.match(line)), lines[-1])
    words = [word if len(word) < 20 or not _is_random(word) else "[…]" for word in said.split()]
    text = SECRET.sub(lambda found: f"{found[1] or ''} […]".strip(), " ".join(words))
    return f": {text[:LAST_WORDS]}{'…' if len(text) > LAST_WORDS else ''}"


ERROR = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt)\b")
"""The line of a traceback that names the error; its text may take several lines."""
SECRET = re.compile(
    r"(?i)\b(bearer|authorization|passw\w*|secret\w*|token|\w*key)\W{1,3}(?:bearer\s+)?(?!\[…)\S+|AKIA\w+"
)


def _is_random(word: str) -> bool:
    """Whether a long word may be a key: it has digits, or no vowels to speak of."""
    return any(c.isdigit() for c in word) or sum(c in "aeiou" for c in word.lower()) * 5 < len(word)


def _pause(scene: Scene, empty: Path) -> Scene:
    del empty
    return _with(scene, {}, wait=True)


def _seeded(seed: str) -> Callable[[Scene, Path], Scene]:
    def change(scene: Scene, empty: Path) -> Scene:
        del empty
        return _with(scene, {"PYTHONHASHSEED": seed})

    return change


def _folder(scene: Scene, empty: Path) -> Scene | None:
    """Another folder that holds the same files, of the whole repository where it is in one; None where
    there is too much to move."""
    root = next((each for each in _up(scene.folder) if (each / ".git").exists()), scene.folder)
    other = empty / "elsewhere"
    try:
        _mirror(root, other, [MOST_FILES, MOST_COPIED])
    except (OSError, OverflowError):
        return None
    folder = other / scene.folder.relative_to(root)
    environment = dict(scene.environment)
    environment.pop("OLDPWD", None)
    if "PWD" in environment:
        environment["PWD"] = str(folder)
    return Scene(environment=environment, folder=folder, wait=scene.wait)


def _up(folder: Path) -> tuple[Path, ...]:
    return (folder, *folder.parents)


def _mirror(source: Path, target: Path, left: list[int]) -> None:
    """The same folders with the same files: hard links, or copies where those are not possible.

    Raises OverflowError for more than is left: files, and bytes of copies.
    """
    target.mkdir()
    for entry in os.scandir(source):
        left[0] -= 1
        if left[0] < 0:
            raise OverflowError
        own = target / entry.name
        if entry.is_symlink() or entry.name in LINKED or not (entry.is_dir() or entry.is_file()):
            own.symlink_to(Path(entry.path))
        elif entry.is_dir():
            _mirror(Path(entry.path), own, left)
        else:
            try:
                os.link(entry.path, own)
            except OSError:
                left[1] -= entry.stat().st_size
                if left[1] < 0:
                    raise OverflowError from None
                shutil.copy2(entry.path, own)


def _home(scene: Scene, empty: Path) -> Scene:
    home = empty / "somebody"
    home.mkdir()
    names = ("HOME", "USERPROFILE", "USER", "LOGNAME", "USERNAME")
    path = {"HOME": str(home), "USERPROFILE": str(home)}
    changed = {name: path.get(name, "somebody") for name in names if name in scene.environment}
    return _with(scene, {"HOME": str(home), **changed})


def _zoned(zone: str) -> Callable[[Scene, Path], Scene]:
    def change(scene: Scene, empty: Path) -> Scene:
        del empty
        return _with(scene, {"TZ": zone})

    return change


def _locale(scene: Scene, empty: Path) -> Scene | None:
    del empty
    now = scene.environment.get("LC_ALL") or scene.environment.get("LANG") or "C"
    program = shutil.which("locale")
    if program is None:
        return None
    try:
        listed = subprocess.run(
            [program, "-a"], capture_output=True, timeout=10, check=False
        ).stdout.decode("ascii", "ignore")
    except (OSError, subprocess.TimeoutExpired):
        return None
    same = {"posix", _plain_locale(now)}
    known = [name for name in listed.split() if _plain_locale(name) not in same]
    # A language of another kind first, else whatever there is.
    known.sort(key=lambda name: (name.startswith(("C", "en")), "utf" not in name.lower(), name))
    if not known or (len(known) == 1 and known[0].startswith("C")):
        return None
    return _with(scene, {"LANG": known[0], "LC_ALL": known[0]})


def _plain_locale(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _reordered(scene: Scene, empty: Path) -> Scene:
    del empty
    return Scene(
        environment=dict(reversed(scene.environment.items())), folder=scene.folder, wait=scene.wait
    )


def _clocked(shift: Callable[[], timedelta]) -> Callable[[Scene, Path], Scene | None]:
    def change(scene: Scene, empty: Path) -> Scene | None:
        del empty
        library = _find_faketime()
        if library is None:
            return None
        ahead = " ".join(filter(None, (library, scene.environment.get("LD_PRELOAD", ""))))
        seconds = int(shift().total_seconds())
        return _with(
            scene,
            {
                "DYLD_INSERT_LIBRARIES" if sys.platform == "darwin" else "LD_PRELOAD": ahead,
                "FAKETIME": f"{seconds:+d}",
                "DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            },
        )

    return change


def _find_faketime() -> str | None:
    return next((path for path in FAKETIME if Path(path).is_file()), None)


def _an_hour() -> timedelta:
    """To or fro, so that the day stays the same, here and at UTC."""
    for shift in (HOUR, -HOUR):
        if all(
            (now + shift).date() == now.date()
            for now in (datetime.now(UTC), datetime.now().astimezone())
        ):
            return shift
    return HOUR


def _a_day() -> timedelta:
    return timedelta(days=1)


SURROUNDINGS = (
    Surrounding(
        id="pause",
        title="nothing but a second of time",
        change=_pause,
        advice="Take what is new each time out of the prefix: give it in the newest user message, behind "
        "the last breakpoint, and keep chance out of it.",
    ),
    *(
        Surrounding(
            id=f"hash_seed_{seed}",
            title=f"PYTHONHASHSEED={seed}",
            change=_seeded(seed),
            advice="Sort what comes from a set, or is keyed by hashes, before it is rendered.",
        )
        for seed in SEEDS
    ),
    Surrounding(
        id="working_folder",
        title="another working folder",
        change=_folder,
        advice="Keep absolute paths out of the prefix: give the folder in the newest user message, or paths "
        "relative to it.",
    ),
    Surrounding(
        id="home",
        title="another HOME and user",
        change=_home,
        advice="Keep home folders and user names out of the prefix.",
    ),
    *(
        Surrounding(
            id=f"time_zone_{way}",
            title=title,
            change=_zoned(zone),
            advice="Keep local times out of the prefix, or write them in UTC and to the day.",
        )
        for way, title, zone in (
            ("east", "a time zone 14 hours ahead", "Pacific/Kiritimati"),
            ("west", "a time zone 12 hours behind", "Etc/GMT+12"),
        )
    ),
    Surrounding(
        id="locale",
        title="another language",
        change=_locale,
        advice="Render dates, numbers and orders without the locale of the machine.",
    ),
    Surrounding(
        id="environment_order",
        title="the environment in another order",
        change=_reordered,
        advice="Sort the names of the environment, or leave them out.",
    ),
    Surrounding(
        id="clock",
        title="a clock an hour off",
        change=_clocked(_an_hour),
        advice="Take the time out of the prefix, or round it to the day if the day is enough.",
    ),
    Surrounding(
        id="day",
        title="a clock a day off",
        change=_clocked(_a_day),
        advice="Take the day out of the prefix if sessions go on past midnight.",
    ),
)
"""One may be left out by its id, or by the part of it before a last `_`: hash_seed, time_zone."""


def _with(scene: Scene, changed: Mapping[str, str], *, wait: bool = False) -> Scene:
    return Scene(
        environment={**scene.environment, **changed}, folder=scene.folder, wait=scene.wait or wait
    )


def chosen_surroundings(skip: Sequence[str]) -> tuple[Surrounding, ...]:
    """All but those that are left out.

    Raises InputError for a name that there is not.
    """
    names = [name.replace("-", "_") for name in skip]
    groups = {each.id.rpartition("_")[0] for each in SURROUNDINGS} & {"hash_seed", "time_zone"}
    for name in names:
        if name not in groups and all(name != each.id for each in SURROUNDINGS):
            known = ", ".join(dict.fromkeys(_group(each.id) for each in SURROUNDINGS))
            raise InputError(f"no surrounding named '{name}'", f"known: {known}")
    return tuple(
        each for each in SURROUNDINGS if each.id not in names and _group(each.id) not in names
    )


def _group(name: str) -> str:
    head = name.rpartition("_")[0]
    return head if head in ("hash_seed", "time_zone") else name


def iter_runs(
    builder: Builder,
    surroundings: Sequence[Surrounding],
    is_same: Callable[[Run], bool],
) -> Iterator[tuple[Surrounding, Run | Failed]]:
    """The runs in changed surroundings: all changed at once, and each alone if that is not the same.

    Before a surrounding is named, the program is run again with nothing changed: what differs then too
    differs by itself.
    """
    if surroundings and all(_together(builder, surroundings, is_same)):
        return
    steady = False
    for each in surroundings:
        with _empty() as folder:
            scene = each.change(builder.scene, folder)
            if scene is None:
                continue
            found = builder.run(scene)
        if not steady and each.id != "pause" and isinstance(found, Run) and not is_same(found):
            for again in (builder.run(builder.scene) for _ in range(TWICE)):
                if isinstance(again, Run) and not is_same(again):
                    yield SURROUNDINGS[0], again
            steady = True
        yield each, found


def _together(
    builder: Builder,
    surroundings: Sequence[Surrounding],
    is_same: Callable[[Run], bool],
) -> Iterator[bool]:
    """Whether each run with everything changed is the same, as many as one kind has variants."""
    kinds: dict[str, list[Surrounding]] = {}
    for each in surroundings:
        kinds.setdefault(_group(each.id), []).append(each)
    for number in range(max(map(len, kinds.values()))):
        with _empty() as folder:
            scene = builder.scene
            for kind, variants in kinds.items():
                if kind == "pause" and number:
                    # One second has passed.
                    continue
                empty = folder / variants[0].id
                empty.mkdir()
                scene = variants[number % len(variants)].change(scene, empty) or scene
            found = builder.run(scene)
            yield isinstance(found, Run) and is_same(found)


WITHOUT = {
    "clock": " (libfaketime is not found): a clock of minutes in UTC is not seen",
    "day": " (libfaketime is not found)",
    "locale": " (no other one is installed)",
    "working_folder": " (too many files to build it up elsewhere)",
}


def unavailable(builder: Builder, surroundings: Sequence[Surrounding]) -> Iterator[str]:
    """What this machine cannot change."""
    for each in surroundings:
        with _empty() as folder:
            if each.change(builder.scene, folder) is None:
                yield f"{each.title}: not possible here{WITHOUT.get(each.id, '')}"


@contextmanager
def _empty() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="surroundings-") as folder:
        yield Path(folder)


def split_command(text: str) -> list[str]:
    """A command as a shell would split it; no shell runs it.

    Raises InputError for quotes that do not end.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--command cannot be split: {error}", "check its quotes") from error
    if not words:
        raise InputError("--command is empty", "write --command 'python build.py'")
    return words


def import_command(target: str) -> list[str]:
    """The command that calls `pkg.mod:function` in a fresh interpreter and prints what it returns.

    Raises InputError for what names no function.
    """
    module, colon, function = target.partition(":")
    if not (module and colon and function):
        raise InputError(f"--import '{target}' names no function", "write pkg.mod:function")
    return [sys.executable, "-m", "ctxdoc.gate.child", target]
