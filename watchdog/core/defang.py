"""Makes foreign text harmless in a chat or a mail: no pings, no markup, no hidden characters.

Log lines, task names and rule texts come from elsewhere. What would act gets one zero-width
space, which changes nothing for the eye; what cannot be seen is removed. Idempotent.
"""

import re
from unicodedata import category

ZWSP = "\u200b"

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)?"  # titles and links
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# What is left of C0 and C1, direction overrides and marks, byte-order marks, noncharacters,
# interlinear and tag characters: nobody sees them, and they make text read other than it is.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U000e0000-\U000e007f]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")

_EVERYBODY = "everyone|here|all|channel|room|online|group|team"
# An address such as root@node-3 or me@example.org pings nobody and stays as it is.
_MENTION = re.compile(
    rf"(?<![A-Za-z0-9._+-])(?P<a>[@＠])(?=[\w<&+!])"
    rf"|(?P<b>[@＠])(?=(?:{_EVERYBODY})|[^\x00-\x7f\s{ZWSP}]|[<&+!])",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<(?=[!@#&/?:A-Za-z])")  # HTML, Slack's <!here>, Discord's <#id>, Feishu's <at>
_COMMAND = re.compile(r"!(?=here|channel|everyone|subteam|date|group)", re.IGNORECASE)
_LINK = re.compile(r"\](?=\(|\[|:)")  # Markdown's [text](url), [text][name] and [name]: url
_LABEL = re.compile(rf"(?<!{ZWSP})(?=\|)")
_ADDRESS = re.compile(rf"[@＠](?=[^\s{ZWSP}])")


def defang(text: str) -> str:
    """Return text of any number of lines that looks the same and does nothing.

    The result is valid Unicode (lone surrogates become U+FFFD), without control characters but
    newline, and without a form that a chat service would take for a mention, tag or titled link.
    """
    text = _ANSI.sub("", text)
    text = _BREAKS.sub("\n", text).replace("\t", "    ")
    text = _SURROGATES.sub("\ufffd", _UNSEEN.sub("", text))
    text = _MENTION.sub(lambda match: match[0] + ZWSP, text)
    text = _MARKUP.sub("<" + ZWSP, text)
    text = _COMMAND.sub("!" + ZWSP, text)
    text = _LINK.sub("]" + ZWSP, text)
    return re.sub(r"\S+", _titled, text) if "|" in text or ">" in text or "&" in text else text


def _titled(match: re.Match[str]) -> str:
    """Break Slack's `url|text` and `@U123>`, which Apprise takes for links and mentions."""
    word = match[0]
    if not ("|" in word or ">" in word or "&" in word):
        return word
    word = _ADDRESS.sub(lambda at: at[0] + ZWSP, word)
    return _LABEL.sub(ZWSP, word) if "://" in word else word


def defang_line(text: str) -> str:
    """Return the same as one line, outer blanks removed."""
    return " ".join(defang(text).split("\n")).strip()


def is_extender(character: str) -> bool:
    """Whether a character belongs to the one before it (accents, variation selectors, joiners)."""
    return category(character) in ("Mn", "Me", "Mc") or character == "\u200d" or character in _SKIN


_SKIN = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
