"""How values become columns and JSON, and back.

Owns the encoding only; which table a value lives in is `sqlite` and `queries`. Text that is no valid
Unicode (lone surrogates) is stored with replacement characters rather than refused, and numbers
that are not finite become "no value".
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from watchdog.core.alerts import Alert, Incident
from watchdog.core.durations import EPOCH
from watchdog.core.health import ProbeState
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamState
from watchdog.core.notifications import Delivery, DeliveryResult, LedgerEntry
from watchdog.core.tasks import TaskState
from watchdog.errors import StoreError

T = TypeVar("T")
MICROSECOND = timedelta(microseconds=1)


def _encode_own(value: object) -> object:
    if isinstance(value, Labels):
        return dict(value.pairs)
    if isinstance(value, Mapping):  # mapping proxies
        return dict(value)
    raise NotImplementedError(f"cannot store a {type(value).__name__}")


def _decode_own(kind: type, value: object) -> object:
    if kind is Labels and isinstance(value, dict):
        return Labels(value)
    raise NotImplementedError(f"cannot read a {kind.__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_own)

ALERT = msgspec.json.Decoder(Alert, dec_hook=_decode_own)
INCIDENT = msgspec.json.Decoder(Incident, dec_hook=_decode_own)
DELIVERY = msgspec.json.Decoder(Delivery, dec_hook=_decode_own)
RESULT = msgspec.json.Decoder(DeliveryResult, dec_hook=_decode_own)
LEDGER = msgspec.json.Decoder(LedgerEntry, dec_hook=_decode_own)
TASK = msgspec.json.Decoder(TaskState, dec_hook=_decode_own)
STREAM = msgspec.json.Decoder(StreamState, dec_hook=_decode_own)
PROBE = msgspec.json.Decoder(ProbeState, dec_hook=_decode_own)
LABELS = msgspec.json.Decoder(Labels, dec_hook=_decode_own)


def encode(value: object) -> str:
    """Return a value as JSON text; every field is written, defaults too."""
    try:
        return _ENCODER.encode(value).decode()
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=_encode_own)
        return _ENCODER.encode(_cleaned(plain)).decode()


def decode(decoder: msgspec.json.Decoder[T], text: str, what: str) -> T:
    """Read a value back; fields that an older version did not write get their defaults.

    Raises:
        StoreError: the text is no such value; `what` says which row it was.
    """
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the state file holds {what} in a form this version cannot read: {error}"
        ) from error


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be stored as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value


def moment_us(moment: datetime) -> int:
    """Return microseconds since the Unix epoch, exactly."""
    return (moment - EPOCH) // MICROSECOND


def from_moment_us(microseconds: int) -> datetime:
    """Return the aware UTC datetime of microseconds since the Unix epoch."""
    return EPOCH + timedelta(microseconds=microseconds)


def span_us(span: timedelta) -> int:
    """Return a duration in microseconds, exactly."""
    return span // MICROSECOND


def from_span_us(microseconds: int) -> timedelta:
    """Return the duration of so many microseconds."""
    return timedelta(microseconds=microseconds)


def hash_column(value: int) -> int | str:
    """Return an 8-byte hash as SQLite can hold it: its integers end below 2^63."""
    return value if -(2**63) <= value < 2**63 else str(value)
