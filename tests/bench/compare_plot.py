# SPDX-License-Identifier: BSD-3-Clause
"""tests/bench/compare's picture, drawn with gnuplot."""
import json
import math
import subprocess

WIDTH, UPPER, BAR = 1300, 620, 24  # pixels: the picture, its upper part, each bar below
LETTER, LINE, GAP = 7.4, 15, 9     # of labels: width of a letter, height, distance from the point


def sent_bytes(options, result, results):
    """What a row put on the links, or between nodes; None where nobody counted."""
    if options.lab:
        return result["links"]["sent"]
    if result["report"]:
        return result["report"]["bytes"]["sent"]
    plain = [r["report"]["bytes"]["plain"] for r in results if r.get("report")]
    return plain[0] if plain else None


def step_kib(options, result, results):
    """KiB that all nodes send in a step of the training; 0 where nobody counted."""
    training = result["training"]
    steps = training["steps_per_epoch"] * len(training["epochs"])
    return (sent_bytes(options, result, results) or 0) / 1024 / steps


def panel(script, title, left, right, bottom, top):
    script += [f"set title {json.dumps(title)}", f"set lmargin at screen {left}",
               f"set rmargin at screen {right}", f"set bmargin at screen {bottom}",
               f"set tmargin at screen {top}"]


def curves(drawn, script, height):
    """Upper part: accuracy and loss over seconds, the key beside them."""
    bottom, top = 1 - (UPPER - 60) / height, 1 - 40 / height
    script += ["set grid", "set xlabel 'seconds'"]
    for number, result in enumerate(drawn):
        script.append(f"$data{number} << END")
        seconds = 0.0
        for epoch in result["training"]["epochs"]:
            seconds += epoch["seconds"]
            script.append(f"{seconds} {100 * epoch['accuracy']} {epoch['loss']}")
        script.append("END")
    for column, title, left, right, key in (
            (2, "test accuracy, %; the axis does not start at 0", 0.04, 0.37, "unset key"),
            (3, "training loss; the axis does not start at 0", 0.42, 0.75,
             f"set key at screen 0.995, screen {top} top right Right maxcols 1 font ',10' "
             "spacing 1.05")):
        panel(script, title, left, right, bottom, top)
        script += [key, "plot " + ", ".join(
            f"$data{number} using 1:{column} with linespoints lw 2 pt {4 + number % 10} "
            f"dt {1 + number // 8} title "
            + json.dumps(result["label"]) for number, result in enumerate(drawn))]


def overlaps(a, b):
    """Whether two areas (left, bottom, right, top) share a pixel."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place_labels(points, words, width, height):
    """Where each label begins (left, middle), in pixels: near its point, on no other label and no
    point. Labels that find no room stand on top of something, near their point."""
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    places = [None] * len(points)
    # Points with the most neighbors choose first.
    crowd = [sum(abs(x - u) < 150 and abs(y - v) < 60 for u, v in points) for x, y in points]
    for i in sorted(range(len(points)), key=lambda i: -crowd[i]):
        (x, y), length = points[i], LETTER * len(words[i])
        tries = [(x + side * (GAP + reach) - (length if side < 0 else 0), y + rise)
                 for reach in (0, 14, 40, 80) for rise in (0, *(
                     sign * step * 9 for step in range(1, 15) for sign in (1, -1)))
                 for side in (1, -1)]
        tries.sort(key=lambda at: math.hypot(
            max(at[0] - x, x - at[0] - length, 0), 1.5 * (at[1] - y)))
        for left, middle in tries:
            area = left - 2, middle - LINE / 2, left + length + 2, middle + LINE / 2
            if not (0 <= area[0] and area[2] <= width and 0 <= area[1] and area[3] <= height):
                continue
            if not any(overlaps(area, other) for other in taken):
                places[i] = left, middle
                taken.append(area)
                break
        else:
            places[i] = x + GAP, y
    return places


def axis(values, room, logarithmic=False):
    """The ends of an axis with `room` on both sides of its values, as a share of their range."""
    values = [math.log(value) for value in values] if logarithmic else values
    low, high = min(values), max(values)
    more = room * ((high - low) or 1)
    ends = low - more, high + more
    return tuple(map(math.exp, ends)) if logarithmic else ends


def scatter(options, drawn, results, script, height):
    """Upper part: the last accuracy over the KiB of a step, each row a point with its name."""
    left, right, bottom, top = 0.05, 0.985, 1 - (UPPER - 60) / height, 1 - 40 / height
    width, tall = (right - left) * WIDTH, (top - bottom) * height
    data = [(max(step_kib(options, result, results), 1e-3),
             100 * result["training"]["epochs"][-1]["accuracy"]) for result in drawn]
    (x0, x1), (y0, y1) = axis([x for x, _ in data], 0.12, True), axis([y for _, y in data], 0.08)
    at = [(math.log(x / x0) / math.log(x1 / x0) * width, (y - y0) / (y1 - y0) * tall)
          for x, y in data]
    words = [result["label"] for result in drawn]
    places = place_labels(at, words, width, tall)

    def graph(x, y):
        return f"graph {x / width}, graph {y / tall}"

    for (x, y), (begin, middle), word in zip(at, places, words):
        end, side = (begin, "left") if begin > x else (begin + LETTER * len(word), "right")
        script.append(f"set label {json.dumps(word)} at {graph(end, middle)} {side} noenhanced "
                      "font ',10'")
        if math.hypot(end - x, middle - y) > 2 * GAP:
            script.append(f"set arrow from {graph(x, y)} to {graph(end, middle)} nohead lc "
                          "rgb '#999999' lw 0.7 back")
    script += ["set grid", "unset key", "set logscale x 2", f"set xrange [{x0}:{x1}]",
               f"set yrange [{y0}:{y1}]", "set xlabel 'KiB per step, of all nodes'",
               "$points << END",
               *(f"{x} {y}" for x, y in data), "END"]
    epochs = len(drawn[0]["training"]["epochs"])
    panel(script, f"test accuracy after {epochs} epoch{'s' * (epochs != 1)}, %; "
          "the axes do not start at 0", left, right, bottom, top)
    script += ["plot $points using 1:2 with points pt 7 ps 1 lc rgb '#0072b2'", "unset label",
               "unset arrow", "unset logscale x", "set xrange [*:*]"]


def bars(options, drawn, results, script, height):
    """Lower part: bytes per step, and seconds with those in the allreduce."""
    bottom, top = 40 / height, 1 - (UPPER + 40) / height
    rows = len(drawn)
    labels = [f"{json.dumps(result['label'])} {rows - i}" for i, result in enumerate(drawn)]
    script += ["unset key", "unset xlabel", "set grid noytics", "set xtics auto",
               "set style fill solid 0.8 noborder", f"set yrange [0.4:{rows + 0.6}]",
               f"set ytics ({', '.join(labels)}) font ',10' scale 0", "$bars << END"]
    for number, result in enumerate(drawn):
        epochs = result["training"]["epochs"]
        script.append(f"{rows - number} {step_kib(options, result, results)} "
                      f"{sum(e['seconds'] for e in epochs)} "
                      f"{sum(e['allreduce_seconds'] for e in epochs)}")
    script.append("END")
    bar = "$bars using (${0}/2):1:(0):{0}:($1-0.36):($1+0.36) with boxxyerror lc rgb '{1}'"
    text = "$bars using {0}:1:(sprintf('{1}', ${0})) with labels left offset 0.4,0 font ',10'"
    panel(script, "KiB per step, of all nodes", 0.18, 0.55, bottom, top)
    script += ["set xrange [0:*]", "set offsets graph 0, graph 0.1, 0, 0",
               f"plot {bar.format(2, '#0072b2')}, {text.format(2, '%.0f')}"]
    panel(script, "seconds; dark: in the allreduce", 0.58, 0.97, bottom, top)
    script += ["unset ytics", f"plot {bar.format(3, '#a6cee3')}, {bar.format(4, '#0072b2')}, "
               f"{text.format(3, '%.1f')}"]


def plot(options, results):
    drawn = [r for r in results if "training" in r]
    height = UPPER + 90 + BAR * len(drawn)
    terminal = "svg dynamic" if options.plot.endswith(".svg") else "pngcairo"
    script = [f"set terminal {terminal} size {WIDTH},{height} font 'Sans,12' background 'white'",
              f"set output {json.dumps(options.plot)}", "set multiplot"]
    if options.against == "bytes" and drawn:
        scatter(options, drawn, results, script, height)
    else:
        curves(drawn, script, height)
    bars(options, drawn, results, script, height)
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)
