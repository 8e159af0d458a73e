"""Which learner's predictions go out, and how another one takes over while the job runs.

A request is a file beside the checkpoints. The loop acts on it when it makes a checkpoint, which then says who leads: a
run that is resumed from there sends out the same predictions, wherever it was killed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from streamlearn.contracts import Snapshot
from streamlearn.errors import BadJob
from streamlearn.snapshot import write_atomic

REQUEST = "promote"

_log = logging.getLogger(__name__)


def request_lead(folder: Path, title: str) -> Path:
    """Ask the job with its checkpoints in `folder` to send out the predictions of the learner called `title`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / REQUEST
    write_atomic(path, title.encode())
    return path


class Lead:
    """The place of the learner whose predictions go out.

    Parameters
    ----------
    titles : sequence of str
        Of all learners, in the order of the job.
    folder : Path, optional
        Where requests are looked for.
    """

    def __init__(self, titles: Sequence[str] = (), folder: Path | None = None) -> None:
        self.index = 0
        self._titles = tuple(titles)
        self._request = None if folder is None else folder / REQUEST
        self._seen: bytes | None = None

    def follow_request(self) -> None:
        """Change the lead, if somebody asked."""
        self._seen = self._read()
        if self._seen is None:
            return
        title = self._seen.decode(errors="replace")
        if title not in self._titles:
            _log.warning("promote: must name one of %s, got %r: nothing changes", list(self._titles), title)
            return
        if self._titles.index(title) != self.index:
            _log.info("predictions of %s go out from here on", title)
        self.index = self._titles.index(title)

    def followed(self) -> None:
        """Remove the request that a durable checkpoint has taken in, unless there is a newer one by now."""
        if self._request is not None and self._seen is not None and self._read() == self._seen:
            self._request.unlink()
        self._seen = None

    def _read(self) -> bytes | None:
        if self._request is None:
            return None
        try:
            return self._request.read_bytes()
        except FileNotFoundError:
            return None

    def state(self) -> Snapshot:
        """Return who leads, and what the learners are called."""
        return {"title": self._titles[self.index], "titles": json.dumps(self._titles)} if self._titles else {}

    def restore(self, state: Snapshot) -> None:
        """Take who leads; the first one where a checkpoint of an older release does not say.

        Raises
        ------
        BadJob
            The learners are not called as they were: the predictions of another one would go out.
        """
        for index, (before, now) in enumerate(zip(json.loads(state.get("titles", "[]")), self._titles, strict=False)):
            if before != now:
                raise BadJob(
                    f"learner[{index}].title: must be as in the checkpoint ({before!r}), got {now!r}; "
                    "set it back, or run with --fresh to start anew"
                )
        title = state.get("title", self._titles[0] if self._titles else None)
        if title is not None and title not in self._titles:
            raise BadJob(
                f"learner: one must have the title {title!r}, as its predictions go out by the checkpoint, "
                f"got {list(self._titles)}"
            )
        self.index = 0 if title is None else self._titles.index(title)
