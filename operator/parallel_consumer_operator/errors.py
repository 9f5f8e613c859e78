"""The operator's errors.

OperatorError
├── RetryableError            another try may succeed: the queue tries again, slower each time
│   ├── ServerUnavailableError    no answer, 429, 5xx
│   └── ConflictError             409: someone else wrote first; observe again
└── PermanentError            the same request will be refused again: the user or the installation must change something
    ├── NotFoundError             404
    ├── RefusedError              400, 413, 422: the object is not acceptable
    └── ForbiddenError            401, 403: the operator lacks a right
"""


class OperatorError(Exception):
    """Something between the operator and the cluster went wrong; the message says what and where."""


class RetryableError(OperatorError):
    """Another try may succeed."""


class ServerUnavailableError(RetryableError):
    """The API server did not answer, or asked to come back later."""


class ConflictError(RetryableError):
    """Someone else wrote first."""


class PermanentError(OperatorError):
    """The same request will be refused again."""


class NotFoundError(PermanentError):
    """There is no such object, or no such kind."""


class RefusedError(PermanentError):
    """The API server does not accept the object; the message is the server's and names the field."""


class ForbiddenError(PermanentError):
    """The operator's role does not allow the request."""
