"""One tree for all that ends an application, and the exit status each means.

ApplicationError
├── WindowError       the window or an argument is wrong (exit status 78, EX_CONFIG)
├── SettingError      a Kafka setting has no meaning for the Java client, or holds a secret (78)
├── OutputError       the output cannot take this window (78)
├── DataLossError     the topic was made anew, or offsets of the window are gone (65, EX_DATAERR)
└── BrokerError       brokers do not answer yet; another run may do better (75, EX_TEMPFAIL)
"""


class ApplicationError(Exception):
    """Ends the application with its message as the reason."""

    exit_status = 70


class WindowError(ApplicationError):
    """The message names the field and what to change."""

    exit_status = 78


class SettingError(ApplicationError):
    """The message names the setting and what to write instead."""

    exit_status = 78


class OutputError(ApplicationError):
    """The message names the path and what is wrong with it."""

    exit_status = 78


class DataLossError(ApplicationError):
    """What the window promises cannot be read any more."""

    exit_status = 65


class BrokerError(ApplicationError):
    """The surroundings must change; running again is right."""

    exit_status = 75
