"""Masking: hides secrets in log lines before anything is stored, shown or sent.

Finds what people leak: authorisation headers, assigned keys and passwords, tokens of a known
shape, credentials in URLs, private key blocks. The rest of the line stays readable: step numbers,
commit hashes and token counts are no secrets. Secrets known by value are `redaction`'s business.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

MASK = "****"

# Every pattern here is linear in the length of the line: it begins with a literal, and no two
# neighbouring repetitions of it can match the same characters.

_START = r"(?<![A-Za-z0-9])"  # not within a word
_QUOTE = r"\\?[\"']"
_LINK = rf"(?:{_QUOTE})?\s{{0,8}}(?:=>|:=|==|[:=：])\s{{0,8}}"
_VALUE = rf"(?:[bBrRuU]{{0,2}}{_QUOTE}(?P<quoted>[^\"'\\]+)|(?P<bare>[^\s\"'`<>&\\]+))"

_ALWAYS = (
    r"pass(?:word|wd|phrase|code)|pwd|secret(?:[_-]?(?:access[_-]?)?key|[_-]?id)?|private[_-]?key"
    r"|credentials?|密码|口令|密钥|令牌"
)
_KEYS = (
    r"(?:api|app|auth|access|account|encryption|master|signing|storage|client|session|ssh|deploy|hmac)"
    r"[_-]?key(?:[_-]?(?:id|secret))?"
)
_TOKENS = r"token|signature|webhook|jwt|sas"

_HARMLESS = frozenset(
    {"none", "null", "nil", "true", "false", "yes", "no", "on", "off", "empty", "unset", "redacted", "str"}
)
_NUMBER = re.compile(r"[-+]?[\d.,_%]+(?:e[-+]?\d+)?[kKmMbB%]?\Z")
_PLAIN = re.compile(r"[A-Za-z0-9+/=_.~:*-]+\Z")
_SHORTEST = {"key": 6, "variable": 4, "token": 8}


def mask(text: str) -> str:
    """Return the line with its secrets replaced by `****`. Masking twice changes nothing more."""
    lowered = text.lower()
    for step in _STEPS:
        if any(trigger in lowered for trigger in step.triggers):
            text = step.pattern.sub(step.replace, text)
    last = text.rfind(" ") + 1
    return text[:last] + MASK if _is_key_body(text[last:]) else text


def mask_all(lines: Iterable[str]) -> list[str]:
    """Return consecutive lines of one writer, masked; of a private key block nothing remains."""
    masked = []
    inside = False
    for line in lines:
        ends = "-----END " in line
        masked.append(MASK if inside and not ends else mask(line))
        if "PRIVATE KEY-----" in line:
            inside = "-----BEGIN " in line and not ends
        elif ends:
            inside = False
    return masked


@dataclass(frozen=True, slots=True)
class _Step:
    triggers: tuple[str, ...]  # lower case; the pattern is tried only if one of them is there
    pattern: re.Pattern[str]
    replace: str | Callable[[re.Match[str]], str]


def _is_key_body(word: str) -> bool:
    """Whether a word is a line of a PEM block (and no digest, path or ruler)."""
    if not _KEY_BODY.match(word) or _HEX.match(word):
        return False
    return not word.isalpha() and word.upper() != word and word.lower() != word


def _kept(match: re.Match[str]) -> str:
    """Keep what tells the kind of token (the first group that took part), hide the rest."""
    return next(group for group in match.groups() if group is not None) + MASK


def _assigned(match: re.Match[str]) -> str:
    value = match["quoted"] if match["quoted"] is not None else match["bare"]
    kind = match.lastgroup if match.lastgroup in _SHORTEST else _kind(match)
    if _MASKED.match(value) or _harmless(kind, match[0].lower(), value):
        return match[0]
    begin = match.start("quoted" if match["quoted"] is not None else "bare") - match.start()
    return match[0][:begin] + MASK + match[0][begin + len(value) :]


def _kind(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return next(kind for kind in ("always", "key", "variable", "token") if groups.get(kind) is not None)


def _harmless(kind: str, whole: str, value: str) -> bool:
    """Whether an assigned value is none: a switch, a placeholder, a path, a count, a word."""
    if value.lower().strip(",;)]}") in _HARMLESS or value[0] in "<$%{[(":
        return True
    password = whole.startswith(("pass", "密", "口"))
    if not password and value.startswith(("/", "./", "~/")):
        return True
    if kind == "always":
        return False
    if len(value) < _SHORTEST[kind] or _NUMBER.match(value.rstrip(",;)]}")):
        return True
    if kind == "token" and not _PLAIN.match(value.rstrip(",;)]}")):
        return True  # code, not a token
    wordy = not any(character.isdigit() for character in value)
    return kind == "token" and wordy and len(value) < 16


def _mixed(match: re.Match[str]) -> str:
    """Hide a long run of letters and digits, unless it is all letters or all digits."""
    return match[0] if match[2].isalpha() or match[2].isdigit() else match[1] + MASK


_SHAPES = re.compile(
    _START + r"(?:("
    r"hf_|gh[opsur]_|github_pat_|glpat-|npm_|pypi-|dop_v1_|xapp-|xox[a-z]-|ya29\.|AIza|SG\.|r8_|wandb_v1_|nvapi-|gsk_"
    r"|sk_(?:live|test)_)[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?"
    r"|(AKIA|ASIA|AKID|LTAI)[A-Za-z0-9]{12,}"
    r"|(eyJ)[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,2}"
    r"|(bot)\d{6,12}:[A-Za-z0-9_-]{30,})"
)
_SK = re.compile(_START + r"(sk-)((?:proj-|ant-|or-)?(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{16,})")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{60,}={0,2}\Z")  # a line of a PEM block
_MASKED = re.compile(r"[A-Za-z0-9_.-]{0,12}\*{4}[,;)\]}]*\Z")  # by an earlier step, or before
_HEX = re.compile(r"[0-9a-fA-F]+\Z")

_STEPS = (
    _Step(
        ("private key-----",),
        re.compile(r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?:(?!-----END).)+"),
        r"\1" + MASK,
    ),
    _Step(("://",), re.compile(r"(://[^\s/@:\"'<>]{0,256}:)[^\s/\"'<>]{1,512}@"), r"\1" + MASK + "@"),
    _Step(("://",), re.compile(r"(://)[^\s/@:\"'<>]{20,512}@"), r"\1" + MASK + "@"),
    _Step(
        ("authorization",),
        re.compile(
            rf"(?i)(authorization{_LINK}(?:{_QUOTE})?"
            r"(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,8})?)[^\s\"'\\,;]+"
        ),
        r"\1" + MASK,
    ),
    _Step(("bearer",), re.compile(_START + r"(?i:(bearer\s{1,8}))[A-Za-z0-9._~+/=-]{8,}"), r"\1" + MASK),
    _Step(("cookie",), re.compile(rf"(?i)(cookie{_LINK}(?:{_QUOTE})?)[^\"'\\]+"), r"\1" + MASK),
    _Step(
        (
            "hf_",
            "gh",
            "glpat",
            "npm_",
            "pypi",
            "dop_v1",
            "xapp",
            "xox",
            "ya29",
            "aiza",
            "sg.",
            "r8_",
            "wandb_v1",
            "nvapi",
            "gsk_",
            "sk_",
            "akia",
            "asia",
            "akid",
            "ltai",
            "eyj",
            "bot",
        ),
        _SHAPES,
        _kept,
    ),
    _Step(("sk-",), _SK, _kept),
    _Step(
        ("hook",),
        re.compile(
            r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|/bot/v2/hook|/api/webhooks"
            r"|webhook\.office\.com/webhookb2)/)[^\s\"'<>]+"
        ),
        r"\1" + MASK,
    ),
    _Step(
        ("?", "&"),
        re.compile(
            r"(?i)([?&](?:[a-z0-9]{1,20}[_.-]){0,4}[a-z0-9]{0,20}?"
            r"(?:token|key|sig|signature|secret|pass|password|passwd|pwd|credential|auth|code|ticket)=)"
            r"[^&\s\"'<>#]+"
        ),
        r"\1" + MASK,
    ),
    _Step(
        ("pass", "pwd", "secret", "private", "credential", "密", "口令", "令牌"),
        re.compile(rf"(?i)(?P<always>{_ALWAYS}){_LINK}{_VALUE}"),
        _assigned,
    ),
    _Step(("key",), re.compile(rf"(?i)(?P<key>{_KEYS}){_LINK}{_VALUE}"), _assigned),
    _Step(
        ("_key", "_token", "_secret", "_pass", "_pwd", "_auth", "_credential", "_ak", "_sk"),
        re.compile(
            r"(?<=[A-Z0-9])(?P<variable>_(?:KEY|TOKEN|SECRET|PASS|PASSWORD|PWD|AUTH|CREDENTIALS?|AK|SK))"
            rf"{_LINK}{_VALUE}"
        ),
        _assigned,
    ),
    _Step(
        ("ak", "sk"),
        re.compile(rf"(?<![A-Za-z0-9_])(?P<variable>[AS]K|[as]k|[AS]k){_LINK}{_VALUE}"),
        _assigned,
    ),
    _Step(
        ("token", "signature", "webhook", "jwt", "sas"),
        re.compile(rf"(?i)(?P<token>{_TOKENS}){_LINK}{_VALUE}"),
        _assigned,
    ),
    _Step(
        ("--",),
        re.compile(
            rf"(?i)(--(?:[a-z0-9]{{1,20}}[-_]){{0,4}}(?:{_ALWAYS}|{_KEYS}|token)\s{{1,8}}(?:{_QUOTE})?)"
            r"(?!-)[^\s\"'`<>&\\]+"
        ),
        r"\1" + MASK,
    ),
    _Step(
        ("key", "token", "secret", "pass", "credential", "login"),
        re.compile(
            r"(?i)((?:key|token|secret|password|passphrase|credential|login)s?[^A-Za-z0-9]{1,5}"
            r"(?:(?:is|was|for|to|using|value|wandb|with)[^A-Za-z0-9]{1,3}){0,2})([A-Za-z0-9]{32,}[+/=]{0,4})"
        ),
        _mixed,
    ),
)
