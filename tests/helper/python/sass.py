#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the code for GPUs that nvdisasm prints, and checks what no test on a CPU sees.

  sass.py FILE...      FILE: the output of nvdisasm -c of one architecture

Of every kernel: no local memory beyond kLocal, registers within its bound. Of those in kGroups: as
many groups of loads as named, each of as many loads as a thread has values, issued before the first
of them is used. Prints a line for each kernel; exit status 1 if one fails."""

import re
import sys

# Registers of a thread: 65536 of a multiprocessor, by 256 threads of each block that must fit.
kRegisters = {"encode": 64, "encode_extremes": 32, "pack": 48, "sum_warp": 80, "sum_block": 64,
              "residual_extremes": 48, "end_extremes": 40, "sum_extremes": 48, "decode": 64,
              "packed": 64, "pair_sum": 64}
kOthers = 32
# Accesses to local memory: what threads save around a call that one warp of a block makes, or one
# register. With fewer registers more blocks fit; kernels/cuda/NOTES.md has what that gains.
kLocal = {"decode_block": 19, "decode_add": 2, "sum_warp_nearest": 44, "sum_warp_exact": 20,
          "encode_block_nearest": 19, "pack": 14}
# Groups of loads: the levels' words and, in decode_add, what they are added to; the values and the
# residual; exact floats, the levels' words, and the residual.
kGroups = {"decode_warp": 1, "decode_block": 1, "decode_add_warp": 2, "decode_add_block": 2,
           "encode_warp": 2, "encode_block": 2, "pack": 2, "packed": 0, "encode_extremes": 1,
           "residual_extremes": 1, "sum": 3}


def named(table, kernel, otherwise):
    """The entry whose name is the longest prefix of the kernel's."""
    fitting = [name for name in table if kernel.startswith(name)]
    return table[max(fitting, key=len)] if fitting else otherwise


def registers(operand):
    """The numbers of the registers that an operand names; R4.64 is R4 and R5."""
    found = set()
    for number, width in re.findall(r"\bR(\d+)((?:\.\w+)*)", operand):
        found.update(range(int(number), int(number) + (2 if ".64" in width else 1)))
    return found


def parse(text):
    """Yields each kernel's name and its instructions: (opcode, operands), or None for a label."""
    kernel, code = None, []
    for line in text.splitlines():
        section = re.match(r"\.text\.slimpi_(\w+):", line)
        if section:
            if kernel:
                yield kernel, code
            kernel, code = section.group(1), []
        elif kernel and re.match(r"[.$\w]+:", line):
            code.append(None)
        elif kernel:
            found = re.match(r"\s+(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?);",
                             line)
            if found:
                code.append((found.group(1), found.group(2)))
    if kernel:
        yield kernel, code


def groups(code):
    """The sizes of the groups of global loads: of a straight piece of code, loads whose results
    nothing has used before the last of them is issued."""
    sizes, pending = [], {}

    def end():
        if pending:
            sizes.append(len(pending))
            pending.clear()

    for instruction in code:
        if instruction is None:
            end()
            continue
        opcode, operands = instruction
        if opcode.split(".")[0] in ("BRA", "EXIT", "RET", "CALL", "BAR", "WARPSYNC", "BRX"):
            end()
            continue
        first, _, rest = operands.partition(",")
        load = opcode.startswith("LDG")
        used = registers(rest if not opcode.startswith(("ST", "RED", "ATOM")) else operands)
        if any(used & to for to in pending.values()):
            end()
        if load:
            pending[len(pending)] = registers(first)
    end()
    return sizes


def check(kernel, code):
    opcodes = [instruction[0] for instruction in code if instruction]
    problems = []
    local = sum(opcode.startswith(("STL", "LDL")) for opcode in opcodes)
    if local > named(kLocal, kernel, 0):
        problems.append(f"{local} accesses to local memory")
    count = 1 + max((number for instruction in code if instruction
                     for number in registers(instruction[1])), default=0)
    bound = named(kRegisters, kernel, kOthers)
    if count > bound:
        problems.append(f"{count} registers, more than {bound}")
    values = 16 if "_warp" in kernel else 8
    wanted = named(kGroups, kernel, 0)
    # A group of twice as many loads counts as two groups.
    found = sum(size // values for size in groups(code))
    if found < wanted:
        problems.append(f"{found} groups of {values} loads, fewer than {wanted}: "
                        f"{sorted(groups(code), reverse=True)}")
    return problems


def main(files):
    failures = kernels = 0
    for file in files:
        with open(file, encoding="utf-8") as source:
            text = source.read()
        for kernel, code in parse(text):
            kernels += 1
            problems = check(kernel, code)
            failures += bool(problems)
            for problem in problems:
                print(f"FAIL {file}: {kernel}: {problem}")
            if not problems:
                print(f"PASS {file}: {kernel}")
    if kernels == 0:
        print("FAIL no kernels")
    return 1 if failures or kernels == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
