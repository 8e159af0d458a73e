"""Every exception streamlearn raises on purpose.

::

    StreamlearnError
    ├── BadParameter      (ValueError)    a parameter of a learner, metric or source breaks its rule
    ├── BadValue          (ValueError)    NaN, infinity, None or text where a number belongs
    ├── BadLabel          (ValueError)    a third label, or a label of the wrong kind
    ├── BadShape          (ValueError)    lengths, dimensions, columns or indexes that do not fit
    ├── TooManyFeatures   (ValueError)    the model would grow past ``max_features``
    ├── BadSnapshot       (ValueError)    a saved model or checkpoint is truncated, altered or not ours
    │   └── NewerSnapshot                 it was written by a newer streamlearn
    ├── BadJob            (ValueError)    the job file: names the key and the rule
    ├── BadEvent          (ValueError)    one event could not be decoded: position, kind, reason
    ├── BaseFailed        (RuntimeError)  an estimator handed to a learner failed: names the batch and its error
    ├── SourceError       (RuntimeError)  the input is not what the checkpoint read, or cannot be read
    ├── SinkError         (RuntimeError)  the output cannot be written or is not what the checkpoint wrote
    ├── RoundFailed       (RuntimeError)  a part of a distributed round lost its worker too often
    ├── NotResumable      (RuntimeError)  something in the job has no state that can be kept
    └── MissingExtra      (ImportError)   an optional library is not installed: names the pip command
"""

from __future__ import annotations


class StreamlearnError(Exception):
    """Base of all errors raised on purpose by streamlearn."""


class BadParameter(StreamlearnError, ValueError):
    """A parameter breaks its rule; the message names who, what, rule and value."""


class BadValue(StreamlearnError, ValueError):
    """A value is not a finite number; the message names the feature and the row."""


class BadLabel(StreamlearnError, ValueError):
    """A label is of the wrong kind, or a third one for a binary learner."""


class BadShape(StreamlearnError, ValueError):
    """Lengths, dimensions, columns or indexes do not fit together."""


class TooManyFeatures(StreamlearnError, ValueError):
    """The event would widen the model past ``max_features``."""


class BadSnapshot(StreamlearnError, ValueError):
    """A saved file is truncated, altered or not written by streamlearn."""


class NewerSnapshot(BadSnapshot):
    """A saved file was written by a newer format than this release reads."""


class BadJob(StreamlearnError, ValueError):
    """The job file is wrong; the message begins with the path of the key."""


class BadEvent(StreamlearnError, ValueError):
    """One event could not be decoded and the policy is to stop."""


class BaseFailed(StreamlearnError, RuntimeError):
    """An estimator or function handed to a learner failed on a batch; its own error is the cause."""


class SourceError(StreamlearnError, RuntimeError):
    """The input cannot be read, or is not the one that the checkpoint read."""


class SinkError(StreamlearnError, RuntimeError):
    """The output cannot be written, or is not the one that the checkpoint wrote."""


class RoundFailed(StreamlearnError, RuntimeError):
    """A part of a distributed round lost its worker too often."""


class NotResumable(StreamlearnError, RuntimeError):
    """A part of the job has no state that can be kept in a checkpoint."""


class MissingExtra(StreamlearnError, ImportError):
    """An optional library is missing."""

    def __init__(self, who: str, library: str, extra: str) -> None:
        super().__init__(f"{who} needs {library}: pip install 'streamlearn[{extra}]'")
