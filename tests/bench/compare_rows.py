# SPDX-License-Identifier: BSD-3-Clause
"""tests/bench/compare's rows, and how each of them is run; and what compare_torch does alike."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

# The decentralized rows reduce the model, not the gradient, and leave each rank a model of its own.
DECENTRALIZED = ("decentralized", "low_precision_decentralized")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class Failure(Exception):
    pass


class Row:
    """One line of the table: NAME[:BITS][,OPTION=VALUE...]; plain is MPI without slimpi. A hook is
    named hook:PATH; a path that ends in .c is built first."""

    def __init__(self, text):
        self.text = text
        name, *rest = text.split(",")
        hook = name.startswith("hook:")
        self.algorithm, _, bits = (name, "", "") if hook else name.partition(":")
        self.options = dict(word.split("=", 1) for word in rest)
        if bits:
            self.options["bits"] = bits
        self.train = []
        words = ["plain MPI" if name == "plain" else self.algorithm.replace("_", " ")]
        if hook:
            words = ["hook " + os.path.basename(name).split(".")[0].removeprefix("hook_")]
        words += [f"{bits} bit" + "s" * (bits != "1")] if bits else []
        for word in rest:
            option, value = word.removeprefix("powersgd_").replace("_", " ").split("=", 1)
            words.append(f"{option} {value}" if word != "error_feedback=1" else option)
        self.label = ", ".join(words)
        if self.algorithm in DECENTRALIZED:
            self.train = ["--average-model"]
        if self.algorithm.endswith("powersgd"):
            # One call per layer: its weights, row by row, then its biases as the last row.
            self.train = ["--per-layer"]
        if self.algorithm == "powersgd":
            self.options["powersgd_shapes"] = "200960=785x256,32896=257x128,1290=129x10"


    def allowed(self):
        """Points of accuracy that it may end below plain MPI; None for what nothing is said of."""
        bits = float(self.options.get("bits", 8))
        feedback = (self.options.get("error_feedback") == "1" or
                    self.algorithm in ("qsgd", "packed"))
        if self.algorithm in DECENTRALIZED:
            return 2
        if self.algorithm.endswith("powersgd"):
            return 3 if 2 <= int(self.options.get("powersgd_rank", 1)) <= 4 else None
        return 1 if bits >= 8 else 2 if bits >= 2 and feedback else None


class Progress:
    """What is being done: on a terminal one line that counts seconds, elsewhere a line a change."""

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.line, self.since, self.over = "", 0.0, threading.Event()
        self.thread = threading.Thread(target=self.tick, daemon=True)

    def __enter__(self):
        if self.live:
            self.thread.start()
        return self

    def __exit__(self, *reason):
        self.over.set()
        if self.live:
            self.thread.join()
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def tick(self):
        while not self.over.wait(0.5):
            print(f"\r\033[K{self.line} ({time.monotonic() - self.since:.0f} s)", end="",
                  file=sys.stderr, flush=True)

    def row(self, name):
        self.name, self.since = name, time.monotonic()
        self.tell("starting")

    def tell(self, text):
        self.line = f"{self.name}: {text}"
        if not self.live:
            print(self.line, file=sys.stderr, flush=True)


class Runner:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.train = f"{options.directory}/tests/programs/train"
        self.slimpi_run = f"{options.directory}/tools/slimpi-run"
        for path in (self.train, self.slimpi_run):
            if not os.access(path, os.X_OK):
                raise Failure(f"{path} is not there: run tools/build first, or name where "
                              "it was built with --directory")
        with open(f"{options.directory}/Makefile") as file:
            makefile = file.read()
        self.mpiexec, self.mpicc = (re.search(rf"^{name} = (.*)$", makefile, re.M).group(1).split()
                                    for name in ("MPIEXEC", "MPICC"))

    def algorithm(self, row):
        """The row's algorithm, a hook's source built; paths count from the source tree."""
        if not row.algorithm.startswith("hook:"):
            return row.algorithm
        path = os.path.join(SOURCE, row.algorithm.removeprefix("hook:"))
        if not path.endswith(".c"):
            return f"hook:{path}"
        built = f"{self.scratch}/{os.path.basename(path)[:-2]}.so"
        command = [*self.mpicc, "-O2", "-shared", "-fPIC", f"-I{SOURCE}/include", "-o", built, path,
                   "-lm"]
        said = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if said.returncode != 0:
            raise Failure(f"{path} cannot be built: {said.stdout.strip()}")
        return f"hook:{built}"

    def command(self, row, environment, train, lab):
        """The words that start the program, and the environment that mpiexec needs."""
        words = [] if row.algorithm == "plain" else [self.slimpi_run]
        words += [self.train, *row.train, *train]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("SLIMPI_")}
        if lab:
            front = [f"{self.options.directory}/tools/slimpi-lab", "--mpiexec",
                     " ".join(self.mpiexec), "--hosts", str(self.options.ranks), "--rate",
                     self.options.lab, "--counters", f"{self.scratch}/counters"]
            for name, value in environment.items():
                front += ["--env", f"{name}={value}"]
            return [*front, "--", *words], inherited
        environment = {**environment, "SLIMPI_RANKS_PER_NODE": "1"}
        return [*self.mpiexec, "-n", str(self.options.ranks), *words], {**inherited, **environment}

    def run(self, row, train, extra, lab, tell):
        """Runs the program once. Returns its results, slimpi's report, and the links' counters."""
        files = {name: f"{self.scratch}/{name}" for name in ("result", "report", "counters")}
        for path in files.values():
            if os.path.exists(path):
                os.remove(path)
        environment = {}
        if row.algorithm != "plain":
            chosen = {"algorithm": self.algorithm(row), "report": files["report"]}
            chosen.update(row.options | extra)
            environment = {f"SLIMPI_{name.upper()}": value for name, value in chosen.items()}
        train = [*train, "--json", files["result"]]
        words, environment = self.command(row, environment, train, lab)
        with open(f"{self.scratch}/errors", "w+") as errors:
            process = subprocess.Popen(
                words, env=environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
            signal.alarm(self.options.timeout)
            try:
                for line in process.stdout:
                    found = re.match(r"epoch (\d+) of .* test accuracy (\S+) %", line)
                    if found:
                        tell(f"epoch {found[1]} of {self.options.epochs} done, {found[2]} % right")
                status = process.wait()
            finally:
                signal.alarm(0)
                end(process)
            errors.seek(0)
            said = [line.rstrip() for line in errors]
        if status != 0:
            ours = [line for line in said if line.startswith("slimpi")]
            raise Failure((ours or said or [f"exit status {status}"])[0])
        read = {}
        for name, path in files.items():
            if os.path.exists(path):
                with open(path) as file:
                    read[name] = json.load(file)
        return read


def end(process):
    """Ends a job that still runs, with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass


def check_files(parser, options):
    if options.resume and not options.json:
        parser.error("--resume needs --json FILE")
    if options.plot and not options.plot.endswith((".svg", ".png")):
        parser.error("--plot wants a name that ends in .svg or .png")


def known_results(options, settings):
    """What the file of --resume has, which must have been made with these settings."""
    if not options.resume or not os.path.exists(options.json):
        return {}
    with open(options.json) as file:
        known = json.load(file)
    for name, value in settings.items():
        if known.get(name) != value:
            raise Failure(f"--resume: {options.json} was made with --{name.replace('_', '-')} "
                          f"{known.get(name)}, not {value}")
    return known


def aligned(rows, widths):
    """The lines of a Markdown table that reads well as text too."""
    lines = ["| " + " | ".join([row[0].ljust(widths[0])] + [
        cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]) + " |" for row in rows]
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    return [lines[0], "| " + " | ".join(rule) + " |", *lines[1:]]


def run_main(name, main):
    """Ends the program with the status of main(), or with the line of a failure."""
    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"{name}: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


def measure(runner, row, tell):
    """One row's results, as they are written to --json."""
    options = runner.options
    train = ["--epochs", str(options.epochs), "--batch", str(options.batch)]
    result = {"row": row.text, "label": row.label, "algorithm": row.algorithm,
              "options": row.options}
    read = runner.run(row, train, {}, options.lab, tell)
    result["training"], result["report"] = read["result"], read.get("report")
    if "counters" in read:
        result["links"] = read["counters"]
    if row.algorithm not in ("plain", *DECENTRALIZED):
        # The error of a call is measured in a short run of its own, because MPI's sums beside it
        # take time.
        tell("error of a call")
        few = ["--epochs", "1", "--batch", str(options.batch),
               "--limit", str(24 * options.batch * options.ranks)]
        read = runner.run(row, few, {"verify": "1"}, None, lambda text: None)
        result["error"] = read["report"]["error"]
    return result
