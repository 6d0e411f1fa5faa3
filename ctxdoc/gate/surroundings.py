"""Surroundings in which a builder has to build the same prefix: one thing changed in each.

The first run is the reference. Then everything around the program is changed at once, a few times; only
when a body differs is each surrounding changed alone, to find the one that it depends on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.gate.process import Builder, Failed, Run, Scene

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


class Surrounding(Struct, frozen=True, kw_only=True):
    """Something around a program that may change without any effect on its prefix."""

    id: str
    title: str
    change: Callable[[Scene, Path], Scene | None]
    """The scene with it changed; None where this machine cannot. The path is an empty folder."""
    advice: str
    """What to do about a prefix that depends on it."""


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
    with os.scandir(source) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                raise OverflowError
            own = target / entry.name
            if (
                entry.is_symlink()
                or entry.name in LINKED
                or not (entry.is_dir() or entry.is_file())
            ):
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

    def differs(found: Run | Failed) -> bool:
        return isinstance(found, Run) and not is_same(found)

    steady = False
    for each in surroundings:
        with _empty() as folder:
            scene = each.change(builder.scene, folder)
            if scene is None:
                continue
            found = builder.run(scene)
        if not steady and each.id != "pause" and differs(found):
            # It is asked once: a program that gave the same twice is taken to be steady.
            again = [builder.run(builder.scene) for _ in range(TWICE)]
            yield from ((SURROUNDINGS[0], run) for run in filter(differs, again))
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
