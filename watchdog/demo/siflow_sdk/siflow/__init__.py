"""A stand-in for the vendor's SDK: the documented calls and answers, against the stand-in cloud.

Written from the documents and from what public programs rely on; holds none of the vendor's code. Its silent
failures are the real one's: None where the cloud says no, AttributeError where it sends a web page.
"""

from ._client import SiFlow
from ._errors import (
    APIConnectionError,
    APIError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    InternalServerError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    SiFlowError,
    UnprocessableEntityError,
)

__version__ = "0.3.20+standin"
__all__ = [
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "InternalServerError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "SiFlow",
    "SiFlowError",
    "UnprocessableEntityError",
]
