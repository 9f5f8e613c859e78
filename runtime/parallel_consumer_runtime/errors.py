"""One tree for all that can end a member, and the exit status each means.

RuntimeFailure
├── PermanentError    another start would end the same: settings, handler, topic (exit status 78, EX_CONFIG)
└── TemporaryError    another start may do better: broker unreachable, fenced, lost (exit status 75, EX_TEMPFAIL)
"""


class RuntimeFailure(Exception):  # noqa: N818 - the leaves carry the suffix
    """Ends the process with its message as the reason."""

    exit_status = 70


class PermanentError(RuntimeFailure):
    """The user must change something; the message says what and where."""

    exit_status = 78


class TemporaryError(RuntimeFailure):
    """The surroundings must change; starting again is right."""

    exit_status = 75
