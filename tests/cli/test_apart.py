"""What is read in a copy of the process comes back as if it had been read here."""

import subprocess
import sys

CODE = """
import os, signal
from watchdog.cli.apart import begin
from watchdog.errors import ConfigError, Problem

here = os.getpid()

def found():
    import decimal
    return os.getpid()

def wrong():
    raise ConfigError([Problem(file="environment", line=3, message="no number", hint="write one")])

def killed():
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return "made up for here"

def buggy():
    raise ZeroDivisionError(os.getpid() == here)

import sys
print(begin(found)() != here, "decimal" in sys.modules)
try:
    begin(wrong)()
except ConfigError as error:
    print(error, error.problems[0].line)
print(begin(killed)())
try:
    begin(buggy)()
except ZeroDivisionError as error:
    print("raised here:", error)
"""


def test_a_value_an_error_and_a_copy_that_dies() -> None:
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == [
        "True False",
        "environment:3:0: no number (write one) 3",
        "made up for here",
        "raised here: True",
    ]
    assert ran.stderr == ""
