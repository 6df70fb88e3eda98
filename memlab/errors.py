"""The errors that memlab raises for what a user can put right."""


class MemlabError(Exception):
    """Base of every error that memlab raises on purpose.

    The message says what was found, where, what was expected, and what to do next.

    >>> from memlab import DataError, MemlabError
    >>> issubclass(DataError, MemlabError)
    True
    """


class DataError(MemlabError):
    """A record, file or argument that cannot be used as it is."""


class StoreError(MemlabError):
    """The store could not be opened, read or written."""


class ModelError(MemlabError):
    """A model could not be found, loaded or run."""


class ExportError(MemlabError):
    """A figure or a table could not be exported."""


class PipelineError(MemlabError):
    """A pipeline string names no known stage, or gives a stage a wrong parameter."""
