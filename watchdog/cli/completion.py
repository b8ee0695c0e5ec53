"""`watchdog completion`: what makes a shell complete verbs, options, and the names a running daemon knows.

The scripts are generated from the verbs themselves. A name is asked for only when Tab is pressed where one
belongs, and silence is the answer to every failure.
"""

import importlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from watchdog.cli.output import standard_output
from watchdog.errors import WatchdogError

COMMANDS = ("watchdog", "job-watchdog")
FILES = "files"
SHELLS = "bash zsh fish"
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "run": (FILES,),
    "once": (FILES,),
    "check": (FILES,),
    "test": (FILES, FILES, FILES, FILES),
    "show": ("incidents",),
    "why": ("incidents",),
    "explain": ("rules", "tasks"),
    "metrics": ("sources", "tasks"),
    "forget": ("tasks",),
    "test-notify": ("channels",),
}
"""What the arguments of a verb are, one after the other."""


class Shell(StrEnum):
    """The shells a script is there for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One verb as a shell sees it."""

    name: str
    help: str
    options: tuple[tuple[str, str], ...]  # (--name, help)
    arguments: tuple[str, ...]


def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell.")] = Shell.BASH,
    names: Annotated[str, typer.Option("--names", hidden=True, help="Instead, list names of a kind.")] = "",
) -> int:
    """Print a script that makes a shell complete our verbs, options and names.

    Bash: watchdog completion bash > ~/.local/share/bash-completion/completions/watchdog

    Zsh: watchdog completion zsh > a file _watchdog in a folder of $fpath

    Fish: watchdog completion fish > ~/.config/fish/completions/watchdog.fish
    """
    output = standard_output()
    if names:
        for name in _names(names):
            output.line(name)
        return 0
    makers = {Shell.BASH: bash, Shell.ZSH: zsh, Shell.FISH: fish}
    output.line(makers[shell](tuple(words())).rstrip())
    return 0


def _names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind that a running daemon knows; nothing if there is none."""
    from watchdog.cli.client import Daemon
    from watchdog.cli.loading import read_settings
    from watchdog.engine.protocol import Names
    from watchdog.engine.views_asked import NamesView

    try:
        view = Daemon.of(read_settings().settings, state=None).ask(Names(), NamesView)
    except WatchdogError:
        return ()
    found: object = getattr(view, kind, ())
    return tuple(name for name in found if name.isprintable()) if isinstance(found, tuple) else ()


def words() -> Iterator[Word]:
    """Yield every verb with its options, as its own command line has them."""
    from watchdog.cli.main import VERBS

    for name, verb in VERBS.items():
        module, _, function = verb.where.partition(":")
        app = typer.Typer(add_completion=False)
        app.command()(getattr(importlib.import_module(module), function))
        command = typer.main.get_command(app)
        options = tuple(
            (option, str(getattr(one, "help", "") or ""))
            for one in command.params
            if not getattr(one, "hidden", False)
            for option in one.opts
            if option.startswith("--")
        )
        yield Word(
            name=name,
            help=verb.help,
            options=(*options, ("--help", "Show this message and exit.")),
            arguments=ARGUMENTS.get(name, ()) if name != "completion" else (SHELLS,),
        )


_BASH = """# bash completion of job-watchdog
_watchdog() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb="" word place=0 wanted="" options=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
            -*) ;;
            *) if [[ -z $verb ]]; then verb=$word; else place=$((place + 1)); fi ;;
        esac
    done
    local IFS=$'\\n'
    COMPREPLY=()
    if [[ -z $verb ]]; then
        COMPREPLY=($(compgen -W $'@VERBS@' -- "$cur"))
        return
    fi
    case $verb in
@OPTIONS@
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
        return
    fi
    case $verb:$place in
@ARGUMENTS@
    esac
    case $wanted in
        "") ;;
        files) compopt -o default ;;
        *" "*) COMPREPLY=($(compgen -W "${wanted// /$'\\n'}" -- "$cur")) ;;
        *)
            for word in $(watchdog completion --names "$wanted" 2>/dev/null); do
                [[ $word == "$cur"* ]] && COMPREPLY+=("$(printf %q "$word")")
            done
            ;;
    esac
}
complete -F _watchdog @COMMANDS@
"""


def bash(verbs: tuple[Word, ...]) -> str:
    """Return the script for bash."""
    options = [
        f"        {word.name}) options=$'{_escaped_lines(name for name, _ in word.options)}' ;;"
        for word in verbs
    ]
    arguments = [
        f"        {word.name}:{place}) wanted={shlex.quote(kind)} ;;"
        for word in verbs
        for place, kind in enumerate(word.arguments)
    ]
    return _filled(
        _BASH,
        VERBS=_escaped_lines(word.name for word in verbs),
        OPTIONS="\n".join(options),
        ARGUMENTS="\n".join(arguments),
    )


_ZSH = """#compdef @COMMANDS@
# zsh completion of job-watchdog
_watchdog() {
    local -a verbs names given
    local verb=${words[2]} wanted=
    verbs=(
@VERBS@
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    if [[ $PREFIX == -* ]]; then
        case $verb in
@OPTIONS@
        esac
        return
    fi
    given=(${(M)words[3,CURRENT-1]:#[^-]*})
    case $verb:${#given} in
@ARGUMENTS@
    esac
    case $wanted in
        "") ;;
        files) _files ;;
        *" "*) compadd -- ${(s: :)wanted} ;;
        *)
            names=(${(f)"$(watchdog completion --names $wanted 2>/dev/null)"})
            compadd -- $names
            ;;
    esac
}
if [[ $funcstack[1] == _watchdog ]]; then _watchdog "$@"; else compdef _watchdog @COMMANDS@; fi
"""


def zsh(verbs: tuple[Word, ...]) -> str:
    """Return the script for zsh."""
    listed = [f"        {shlex.quote(f'{word.name}:{word.help}')}" for word in verbs]
    options = [
        f"            {word.name}) compadd -- {' '.join(name for name, _ in word.options)} ;;"
        for word in verbs
    ]
    arguments = [
        f"        {word.name}:{place}) wanted={shlex.quote(kind)} ;;"
        for word in verbs
        for place, kind in enumerate(word.arguments)
    ]
    return _filled(_ZSH, VERBS="\n".join(listed), OPTIONS="\n".join(options), ARGUMENTS="\n".join(arguments))


def fish(verbs: tuple[Word, ...]) -> str:
    """Return the script for fish."""
    lines = ["# fish completion of job-watchdog"]
    for command in COMMANDS:
        lines.append(f"complete -c {command} -f")
        for word in verbs:
            lines += _fish_word(command, word)
    return "\n".join(lines) + "\n"


def _fish_word(command: str, word: Word) -> Iterator[str]:
    yield f"complete -c {command} -n __fish_use_subcommand -a {word.name} -d {shlex.quote(word.help)}"
    seen = f"'__fish_seen_subcommand_from {word.name}'"
    for name, text in word.options:
        yield f"complete -c {command} -n {seen} -l {name.removeprefix('--')} -d {shlex.quote(_line(text))}"
    for kind in dict.fromkeys(word.arguments):
        if kind == FILES:
            yield f"complete -c {command} -n {seen} -F"
        elif " " in kind:
            yield f"complete -c {command} -n {seen} -a {shlex.quote(kind)}"
        else:
            yield f"complete -c {command} -n {seen} -a '(watchdog completion --names {kind} 2>/dev/null)'"


def _filled(template: str, **parts: str) -> str:
    for name, text in {**parts, "COMMANDS": " ".join(COMMANDS)}.items():
        template = template.replace(f"@{name}@", text)
    return template


def _escaped_lines(names: Iterator[str]) -> str:
    """Return names for a $'…' string, one a line."""
    return "\\n".join(names)


def _line(text: str) -> str:
    return " ".join(text.split())
