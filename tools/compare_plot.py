# SPDX-License-Identifier: BSD-3-Clause
"""tools/compare's picture, drawn with gnuplot."""
import json
import subprocess

WIDTH, CURVES, BAR = 1300, 460, 24  # pixels: the picture, its upper half, each bar below


def sent_bytes(options, result, results):
    """What a row put on the links, or between nodes; None where nobody counted."""
    if options.lab:
        return result["links"]["sent"]
    if result["report"]:
        return result["report"]["bytes"]["sent"]
    plain = [r["report"]["bytes"]["plain"] for r in results if r.get("report")]
    return plain[0] if plain else None


def panel(script, title, left, right, bottom, top):
    script += [f"set title {json.dumps(title)}", f"set lmargin at screen {left}",
               f"set rmargin at screen {right}", f"set bmargin at screen {bottom}",
               f"set tmargin at screen {top}"]


def curves(options, drawn, script, height):
    """Upper half: accuracy and loss over epochs or seconds, the key beside them."""
    bottom, top = 1 - (CURVES - 60) / height, 1 - 40 / height
    script += ["set grid", f"set xlabel {json.dumps(options.against)}"]
    if options.against == "epochs":
        script.append("set xtics 1")
    for number, result in enumerate(drawn):
        script.append(f"$data{number} << END")
        seconds = 0.0
        for epoch in result["training"]["epochs"]:
            seconds += epoch["seconds"]
            at = seconds if options.against == "seconds" else epoch["epoch"]
            script.append(f"{at} {100 * epoch['accuracy']} {epoch['loss']}")
        script.append("END")
    for column, title, left, right, key in (
            (2, "test accuracy, %", 0.04, 0.37, "unset key"),
            (3, "training loss", 0.42, 0.75,
             f"set key at screen 0.995, screen {top} top right Right maxcols 1 font ',10' "
             "spacing 1.05")):
        panel(script, title, left, right, bottom, top)
        script += [key, "plot " + ", ".join(
            f"$data{number} using 1:{column} with linespoints lw 2 dt {1 + number // 8} title "
            + json.dumps(result["label"]) for number, result in enumerate(drawn))]


def bars(options, drawn, results, script, height):
    """Lower half: bytes per step, and seconds with those in the allreduce."""
    bottom, top = 40 / height, 1 - (CURVES + 40) / height
    rows = len(drawn)
    labels = [f"{json.dumps(result['label'])} {rows - i}" for i, result in enumerate(drawn)]
    script += ["unset key", "unset xlabel", "set grid noytics", "set xtics auto",
               "set style fill solid 0.8 noborder", f"set yrange [0.4:{rows + 0.6}]",
               f"set ytics ({', '.join(labels)}) font ',10' scale 0", "$bars << END"]
    for number, result in enumerate(drawn):
        epochs = result["training"]["epochs"]
        steps = result["training"]["steps_per_epoch"] * len(epochs)
        sent = sent_bytes(options, result, results)
        script.append(f"{rows - number} {(sent or 0) / 1e3 / steps} "
                      f"{sum(e['seconds'] for e in epochs)} "
                      f"{sum(e['allreduce_seconds'] for e in epochs)}")
    script.append("END")
    bar = "$bars using (${0}/2):1:(0):{0}:($1-0.36):($1+0.36) with boxxyerror lc rgb '{1}'"
    text = "$bars using {0}:1:(sprintf('{1}', ${0})) with labels left offset 0.4,0 font ',10'"
    panel(script, "KB per step, of all nodes", 0.18, 0.55, bottom, top)
    script += ["set xrange [0:*]", "set offsets graph 0, graph 0.1, 0, 0",
               f"plot {bar.format(2, '#0072b2')}, {text.format(2, '%.0f')}"]
    panel(script, "seconds; dark: in the allreduce", 0.58, 0.97, bottom, top)
    script += ["unset ytics", f"plot {bar.format(3, '#a6cee3')}, {bar.format(4, '#0072b2')}, "
               f"{text.format(3, '%.1f')}"]


def plot(options, results):
    drawn = [r for r in results if "training" in r]
    height = CURVES + 90 + BAR * len(drawn)
    terminal = "svg dynamic" if options.plot.endswith(".svg") else "pngcairo"
    script = [f"set terminal {terminal} size {WIDTH},{height} font 'Sans,12' background 'white'",
              f"set output {json.dumps(options.plot)}", "set multiplot"]
    curves(options, drawn, script, height)
    bars(options, drawn, results, script, height)
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)
