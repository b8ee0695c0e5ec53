"""The SDK's exceptions, importable from the package's root."""

from collections.abc import Mapping


class SiFlowError(Exception):
    """Base of all."""


class APIError(SiFlowError):
    """A call failed."""


class APIConnectionError(APIError):
    """The cloud was not reached."""


class APITimeoutError(APIConnectionError):
    """The cloud did not answer in time."""


class APIResponseValidationError(APIError):
    """The answer has not the form that was expected."""


class Response:
    """What an error knows of the answer."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = {name.lower(): value for name, value in headers.items()}


class APIStatusError(APIError):
    """The cloud answered with an HTTP error."""

    def __init__(self, message: str, status_code: int, headers: Mapping[str, str]) -> None:
        self.message = message
        self.status_code = status_code
        self.response = Response(headers)
        super().__init__(message)


class BadRequestError(APIStatusError):
    """400."""


class AuthenticationError(APIStatusError):
    """401."""


class PermissionDeniedError(APIStatusError):
    """403."""


class NotFoundError(APIStatusError):
    """404."""


class ConflictError(APIStatusError):
    """409."""


class UnprocessableEntityError(APIStatusError):
    """422."""


class RateLimitError(APIStatusError):
    """429."""


class InternalServerError(APIStatusError):
    """500 and above."""


BY_STATUS: Mapping[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def of_status(status: int, message: str, headers: Mapping[str, str]) -> APIStatusError:
    """Return the exception of an HTTP status."""
    kind = BY_STATUS.get(status, InternalServerError if status >= 500 else APIStatusError)
    return kind(f"Error code: {status} - {message}", status, headers)
