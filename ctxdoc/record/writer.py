"""A log that survives: a line is written whole, at once, and a full disk ends the recording, not the agent."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from threading import Lock

from ctxdoc.errors import InputError
from ctxdoc.record.lines import Seen, line_of
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
        try:
            # Prompts are the owner's own.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._file = os.open(self.path, flags, 0o600)
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

    def add(self, seen: Seen) -> None:
        """Writes one exchange, in one write of one line."""
        if self.stopped:
            return
        try:
            line = line_of(seen, self._redactor)
            with self._lock:
                if self.stopped:
                    return
                if os.write(self._file, line) != len(line):
                    raise OSError(ENOSPC, os.strerror(ENOSPC))
                self.messages += seen.is_message
                self.others += not seen.is_message
        except Exception as error:  # Nothing that goes wrong here may reach a request.
            self._stop(error)

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
            self.stopped = True
            os.close(self._file)
        if not self.existed and not self.messages and not self.others:
            self.path.unlink(missing_ok=True)
