#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what `perf script -F comm,ip,sym,dso` prints as a flame graph, an SVG: width is time, what
called is below what was called."""
import html
import re
import sys
import zlib

WIDTH, ROW, LEAST = 1200, 17, 0.8  # pixels; frames narrower than LEAST are left out


class Frame:
    def __init__(self):
        self.samples = 0
        self.called = {}

    def add(self, names):
        self.samples += 1
        if names:
            self.called.setdefault(names[0], Frame()).add(names[1:])

    def depth(self):
        return 1 + max((frame.depth() for frame in self.called.values()), default=0)


def short(symbol):
    """A function's own name, without offset, arguments and namespaces."""
    symbol = re.sub(r"\(anonymous namespace\)::|slimpi::", "", symbol)
    return re.sub(r"\+0x[0-9a-f]+$", "", symbol).split("(")[0]


def read(lines):
    """One sample after the other: (command, [function, ...]), the outermost first."""
    command, frames = None, []
    for line in lines:
        if not line.strip():
            if command is not None:
                yield command, frames[::-1]
            command, frames = None, []
        elif not line[0].isspace():
            command = line.split()[0]
        else:
            match = re.match(r"\s*[0-9a-f]+ (.*?) \((.*?)\)$", line.rstrip())
            if match:
                library = match[2].rsplit("/", 1)[-1].split(".so")[0]
                frames.append(short(match[1]) if match[1] != "[unknown]" else f"[{library}]")
    if command is not None:
        yield command, frames[::-1]


def color(name):
    mix = zlib.crc32(name.encode())
    return f"rgb({205 + mix % 50},{80 + mix // 50 % 130},{40 + mix // 9000 % 40})"


def draw(frame, name, left, scale, floor, out):
    width = frame.samples * scale
    if width < LEAST:
        return
    text = html.escape(name if len(name) * 7 < width else name[: int(width / 7)])
    out.append(
        f'<g><title>{html.escape(name)}: {frame.samples} samples</title>'
        f'<rect x="{left:.1f}" y="{floor - ROW}" width="{width:.1f}" height="{ROW - 1}" '
        f'fill="{color(name)}"/><text x="{left + 2:.1f}" y="{floor - 5}">{text}</text></g>')
    for called, inner in sorted(frame.called.items()):
        draw(inner, called, left, scale, floor - ROW, out)
        left += inner.samples * scale


def main():
    root = Frame()
    for command, frames in read(sys.stdin):
        if not command.startswith(("swapper", "perf")):
            root.add([command, *frames])
    if root.samples == 0:
        sys.exit("flame.py: no samples")
    height, out = (root.depth() + 1) * ROW, []
    draw(root, f"all, {root.samples} samples", 0, WIDTH / root.samples, height - ROW // 2, out)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
          'font-family="monospace" font-size="11">', *out, "</svg>", sep="\n")


main()
