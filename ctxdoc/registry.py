"""Ordered sets of named parts, one file each, imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Generic, TypeVar

from ctxdoc.errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Parts of one kind: the order of the names is their precedence.

    Each name is a module of `package` that holds the part under `attribute`.
    """

    def __init__(
        self,
        package: str,
        attribute: str,
        names: tuple[str, ...],
        what: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.package = package
        self.attribute = attribute
        self.names = names
        self.what = what or attribute.lower()
        """The word for one part, for messages."""
        self._files = files or {}
        """Modules by name, of the parts whose module is called otherwise."""
        self._parts: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return (self[name] for name in self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name.replace("-", "_") in self.names

    def __getitem__(self, name: str) -> T:
        """The part; a dash may stand for an underscore.

        Raises UnknownNameError with the nearest names.
        """
        key = name.replace("-", "_")
        if key not in self.names:
            near = get_close_matches(key, self.names, n=3, cutoff=0.6)
            raise UnknownNameError(self.what, name, near, list(self.names))
        if key not in self._parts:
            self._parts[key] = getattr(self._module(key), self.attribute)
        return self._parts[key]

    def page(self, name: str) -> str:
        """The documentation of a part: its module's docstring."""
        part = self[name]
        del part
        return self._module(name.replace("-", "_")).__doc__ or ""

    def file_of(self, name: str) -> str:
        """The module that holds a part, in the package."""
        return self._files.get(name, name)

    def _module(self, key: str) -> ModuleType:
        return import_module(f"{self.package}.{self.file_of(key)}")


def any_of(names: Sequence[str]) -> str:
    """Names as a sentence lists them: a, b or c."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
