# SPDX-License-Identifier: BSD-3-Clause
"""Checks tests/tools/advice.txt: each text of src and tools that tells the user to do something
with an option, a variable, a function or a command has a row there, and each row such a text.

Usage: advice.py SOURCE prints the rows that advice.sh runs."""
import glob
import os
import re
import sys

_SOURCES = ("src/**/*.cpp", "src/**/*.h", "src/**/*.def", "tools/*.c*", "tools/run/*.cpp",
            "tools/python/slimpi/*.py")
_DESCRIPTIONS = ("src/options/options.def", "src/observe/counters.def")
# An imperative that begins a clause, and a name to use it with.
_VERB = (r"(?:set|unset|use|give|load|(?:re)?install|start|call|pass|choose|let|put|add|ask|"
         r"name|make|save|leave|wrap|move|convert|try)")
_ADVICE = re.compile(rf"(?:^|[;:,(] |\band |\bor )(?:to )?{_VERB}\b")
_NAME = re.compile(r"SLIMPI_[A-Z_]+|--[a-z][a-z-]+|\b[A-Z]{2,}[A-Z0-9]*_[A-Z_0-9]{3,}|"
                   r"MPI_[A-Z]\w+|mpiexec|MPICH|pip install|slimpi-\w+|slimpi\.[a-z_.]+|"
                   r"\w+\(|the array|the model|"
                   r"both")


def literals(path):
    """Yields the string literals of a source, adjacent ones as one text."""
    with open(path) as file:
        text = file.read()
    if path.endswith(".py"):
        text = re.sub(r'"""[\s\S]*?"""|(?m:(?:^|\s)# .*$)', "", text)
    else:
        text = re.sub(r"(?m)^\s*//.*$|/\*[\s\S]*?\*/|\s//\s.*$", "", text)
    for run in re.finditer(r'(?:f?"(?:[^"\\\n]|\\.)*"\s*)+', text):
        yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', run.group(0)))


def texts():
    for pattern in _SOURCES:
        for path in sorted(glob.glob(pattern, recursive=True)):
            for text in () if path in _DESCRIPTIONS else literals(path):
                # The texts of slimpi-info --reasons are descriptions.
                described = path.endswith(".def") and text.endswith(".")
                if " " in text and not described and not text.startswith("Usage") and (
                        _ADVICE.search(text) and _NAME.search(re.sub(r"{[^}]*}", "{}", text))):
                    yield path, text


os.chdir(sys.argv[1])
failed = False
with open("tests/tools/advice.txt") as file:
    rows = [[field.strip() for field in line.split(" | ")] for line in file
            if line.strip() and not line.startswith("#")]
found = list(texts())
for path, text in found:
    if not any(row[0] in text for row in rows):
        failed = True
        print(f"FAIL {path}: no row of tests/tools/advice.txt tries: {text}", file=sys.stderr)
for row in rows:
    if not any(row[0] in text for _, text in found):
        failed = True
        print(f"FAIL no text has the advice of this row: {row[0]}", file=sys.stderr)
    elif row[1].startswith("tests/"):
        with open(row[1]) as file:
            if row[2] not in file.read():
                failed = True
                print(f"FAIL {row[1]} has no {row[2]}", file=sys.stderr)
    else:
        print(" | ".join(row))
sys.exit(failed)
