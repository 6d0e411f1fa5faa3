"""A log that survives: a line is written whole, at once, and a full disk ends the recording, not the agent."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from threading import Lock

from ctxdoc.errors import InputError
from ctxdoc.record.lines import Seen, bare_line_of, line_of
from ctxdoc.record.redaction import Redactor

REDACTIONS = ("none", "text")


class Recorder:
    """Writes exchanges to a log, from any thread; it never raises once it is made."""

    def __init__(
        self, path: str | Path, *, redact: str = "none", tell: Callable[[str], None] | None = None
    ) -> None:
        """Opens the log, and adds to one that is there. `tell` hears of what goes wrong, once.

        Raises InputError for a path that cannot be written and for a redaction that there is not.
        """
        if redact not in REDACTIONS:
            raise InputError(f"no redaction named '{redact}'", f"known: {', '.join(REDACTIONS)}")
        self.path = Path(path)
        self.existed = self.path.exists()
        if self.path.is_dir() or self.path.is_fifo() or self.path.is_socket():
            raise InputError(f"cannot write {path}: it is no file", "choose another log")
        try:
            # Prompts are the owner's own.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._file = os.open(self.path, flags, 0o600)
            self._end_last_line()
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot write {path}: {reason}", "choose another log") from error
        self._redactor = Redactor() if redact == "text" else None
        self._tell = tell or (lambda _: None)
        self._lock = Lock()
        self.messages = 0
        """Calls of the Messages API that were written."""
        self.others = 0
        self.stopped = False
        """Whether a write has failed, and no more is tried."""
        self.closed = False

    def add(self, seen: Seen) -> None:
        """Writes one exchange, in one write of one line."""
        if self.stopped or self.closed:
            return
        try:
            with self._lock:
                if self.stopped or self.closed:
                    return
                self._write(self._line(seen))
                self.messages += seen.is_message
                self.others += not seen.is_message
        except Exception as error:  # Nothing that goes wrong here may reach a request.
            self._stop(error)

    def _line(self, seen: Seen) -> bytes:
        """The line of an exchange; what is odd about one does not end the recording of the others."""
        try:
            return line_of(seen, self._redactor)
        except Exception as error:
            return bare_line_of(seen, type(error).__name__)

    def _write(self, line: bytes) -> None:
        written = os.write(self._file, line)
        if written != len(line):
            with suppress(OSError):
                # Half a line would spoil the next one.
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    def _end_last_line(self) -> None:
        """Ends a line that a kill has cut, so that the next one stands by itself."""
        with suppress(OSError):
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                os.write(self._file, b"\n")

    def _stop(self, error: Exception) -> None:
        with self._lock:
            if self.stopped:
                return
            self.stopped = True
        reason = getattr(error, "strerror", None) or type(error).__name__
        self._tell(f"recording to {self.path} has stopped: {reason}; requests still pass")

    def close(self) -> None:
        """Closes the log, and takes away one that was made for nothing."""
        with self._lock:
            self.closed = True
            mine = os.fstat(self._file)
            os.close(self._file)
        with suppress(OSError):
            # Another recorder may have written to it, or put another one in its place.
            there = self.path.stat()
            if not self.existed and not there.st_size and there.st_ino == mine.st_ino:
                self.path.unlink(missing_ok=True)
