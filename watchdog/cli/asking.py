"""Questions to a person at a terminal: with a default, hidden, or one of several words.

Owns how a question looks and how an answer is read. What is asked and why is the caller's business.
A hidden answer is never shown, not even when the terminal cannot hide it: then it is not asked for.
"""

import contextlib
import getpass
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from watchdog.cli.output import Output, Style, safe
from watchdog.errors import WatchdogError

INDENT = "   "

Check = Callable[[str], str]  # an answer → what is wrong with it, "" if nothing


class NobodyToAskError(WatchdogError):
    """A question without a default came up where no person can answer it; the text is the question."""


def somebody_is_there() -> bool:
    """Whether a person can be asked: standard input and output are both a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _all_right(_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks on the terminal; where nobody can be asked, every question gets its default."""

    output: Output
    interactive: bool

    def title(self, text: str) -> None:
        """Begin a part of the conversation."""
        self.output.line()
        self.output.line(self.output.styled(text, Style.BOLD))

    def say(self, text: str = "") -> None:
        """Write a text of ours under the title."""
        self._marked("", Style.DIM, text)

    def good(self, text: str) -> None:
        """Write that something works."""
        self._marked("ok", Style.GREEN, text)

    def doubt(self, text: str) -> None:
        """Write something that a person should know."""
        self._marked("note", Style.YELLOW, text)

    def bad(self, text: str) -> None:
        """Write that something does not work."""
        self._marked("FAILED", Style.RED, text)

    def text(self, question: str, default: str = "", check: Check = _all_right) -> str:
        """Ask for a text until `check` finds nothing wrong with it; an empty answer is the default.

        Raises:
            NobodyToAskError: there is nobody to ask and no default.
            EOFError: the terminal was closed, or the person typed Ctrl-D.
        """
        if not self.interactive:
            return self._unasked(question, default)
        shown = f" [{safe(default)}]" if default else ""
        while True:
            answer = self._line(f"{INDENT}{question}{shown}: ") or default
            wrong = check(answer) if answer else "an answer is needed (Ctrl-C stops)"
            if not wrong:
                return answer
            self.doubt(wrong)

    def hidden(self, question: str, check: Check = _all_right) -> str:
        """Ask for a secret. What is typed or pasted is not shown.

        Raises:
            NobodyToAskError: there is nobody to ask, or the terminal cannot hide what is typed.
            EOFError: as `text`.
        """
        if not self.interactive:
            raise NobodyToAskError(question)
        while True:
            self.output.stream.flush()
            with warnings.catch_warnings():
                warnings.simplefilter("error", getpass.GetPassWarning)
                try:
                    answer = getpass.getpass(f"{INDENT}{question} (hidden): ").strip()
                except getpass.GetPassWarning:
                    raise NobodyToAskError(f"{question}: this terminal cannot hide what is typed") from None
            wrong = check(answer) if answer else "an answer is needed (Ctrl-C stops)"
            if not wrong:
                return answer
            self.doubt(wrong)

    def word(self, question: str, words: Sequence[str], default: str = "") -> str:
        """Ask for one of several words; any unambiguous beginning of one will do."""

        def fitting(answer: str) -> list[str]:
            exact = [word for word in words if word == answer]
            return exact or [word for word in words if word.startswith(answer.lower())]

        def check(answer: str) -> str:
            return "" if len(fitting(answer)) == 1 else f"one of {', '.join(words)}"

        return fitting(self.text(f"{question} ({', '.join(words)})", default, check))[0]

    def yes(self, question: str, *, default: bool) -> bool:
        """Ask yes or no."""
        return self.word(question, ("yes", "no"), "yes" if default else "no") == "yes"

    def _marked(self, mark: str, style: Style, text: str) -> None:
        """Write a text behind a mark; on a terminal, its further lines stand under its first."""
        before = len(INDENT) + (len(mark) + 2 if mark else 0)
        lines = [safe(text)]
        if self.output.terminal:
            room = max(20, self.output.width - before)
            lines = wrap(lines[0], room, break_long_words=False, break_on_hyphens=False)
        styled = f"{self.output.styled(mark, style)}  " if mark else ""
        self.output.line(f"{INDENT}{styled}" + f"\n{' ' * before}".join(lines))

    def _unasked(self, question: str, default: str) -> str:
        if not default:
            raise NobodyToAskError(question)
        return default

    def _line(self, prompt: str) -> str:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - its import is what makes the arrow keys work in input()
        self.output.stream.flush()
        return input(prompt).strip()
