"""The JSON Schema of the rule file, for editors: made from the tables that the file is read with.

It knows shapes and words; what only the reader can know (units, names of channels, patterns) is for
`check`.
"""

import json
from collections.abc import Mapping

from watchdog.config.kinds import Schema
from watchdog.config.schema import SourceKind, rule_file

DIALECT = "http://json-schema.org/draft-07/schema#"


def json_schema(kinds: Mapping[str, SourceKind]) -> Schema:
    """Return the schema of a rule file whose sources are of these kinds."""
    head: Schema = {
        "$schema": DIALECT,
        "title": "job-watchdog rules",
        "description": "What to look at, what to look for and whom to tell.",
    }
    return head | rule_file(kinds).schema()


def json_schema_text(kinds: Mapping[str, SourceKind]) -> str:
    """Return the schema as indented JSON that ends with a newline."""
    return json.dumps(json_schema(kinds), indent=2, ensure_ascii=False) + "\n"
