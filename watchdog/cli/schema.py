"""`watchdog schema`: the JSON Schema of the rule file, for editors."""

from pathlib import Path
from typing import Annotated

import typer

from watchdog.cli.output import standard_output


def schema(
    docs: Annotated[
        Path | None,
        typer.Option("--docs", help="Instead, renew the tables in this document.", metavar="FILE"),
    ] = None,
) -> int:
    """Print the JSON Schema of the rule file, for completion and checking in an editor.

    Save it as rules.schema.json and write at the top of the rule file:
    # yaml-language-server: $schema=./rules.schema.json
    """
    from watchdog.config.jsonschema import json_schema_text
    from watchdog.config.reference import regenerate
    from watchdog.errors import ConfigError, Problem
    from watchdog.sources.registry import SOURCE_KINDS

    if docs is None:
        standard_output().line(json_schema_text(SOURCE_KINDS).rstrip())
        return 0
    if docs.exists() and not docs.is_file():  # a device never ends
        raise ConfigError([Problem(file=str(docs), message="is no document")])
    try:
        text = docs.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError([Problem(file=str(docs), message="cannot be read: it is not UTF-8 text")]) from None
    docs.write_text(regenerate(text, SOURCE_KINDS), encoding="utf-8")
    return 0
