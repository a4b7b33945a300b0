"""The exceptions a user of Forecause can meet.

ForecauseError
├── InputError          the data, a file or the call is wrong (the command exits with 2)
│   └── MissingExtra    an optional package is needed for what was asked
├── TrainingError       a forecaster could not be trained on this data (the command exits with 1)
└── WorkerDied          a piece of work whose worker died every time

ForecauseWarning        a run of which no error rate can be promised; see `Discovery.doubts`
"""

import re

# Looks:
LONGEST_WORD, LONGEST = 300, 2_000  # letters of a name within a sentence, and of the sentence


def _readable(sentence: str) -> str:
    """The sentence with names of thousands of letters cut in their middle."""
    words = re.sub(
        rf"\S{{{LONGEST_WORD + 1},}}", lambda word: _cut(word[0], LONGEST_WORD), sentence
    )
    return _cut(words, LONGEST)


def _cut(text: str, longest: int) -> str:
    kept = longest // 2 - 2
    return text if len(text) <= longest else f"{text[:kept]}...{text[-kept:]}"


class ForecauseError(Exception):
    """Base of everything Forecause raises on purpose.

    Examples
    --------
    >>> import forecause as fc
    >>> try:
    ...     fc.load("no such folder")
    ... except fc.ForecauseError as error:
    ...     print(error)
    no such folder is not a saved run: run.json is missing.
    """


class InputError(ForecauseError, ValueError):
    """What was given cannot be used: says what was expected, what was found and what to try.

    Examples
    --------
    >>> import forecause as fc
    >>> try:
    ...     fc.Config.of(readout="attention")
    ... except fc.InputError as error:
    ...     print(error)
    The readout 'attention' needs a forecaster with attention; choose forecaster='transformer'.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(_readable(sentence))


class MissingExtra(InputError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, folder: str = ".") -> None:
        super().__init__(
            f"This needs the package {package!r}, which is not installed; try: pip install "
            f"{package} (or in Forecause's own folder: pip install '{folder}[{extra}]')"
        )


class TrainingError(ForecauseError, RuntimeError):
    """Training failed for a reason the user can act on."""


class ForecauseWarning(UserWarning):
    """The run came to an end, but there is reason not to believe all of it.

    Examples
    --------
    >>> import warnings
    >>> import forecause as fc
    >>> warnings.simplefilter("ignore", fc.ForecauseWarning)  # `run.doubts` still says why
    """
