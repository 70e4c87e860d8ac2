# SPDX-License-Identifier: BSD-3-Clause
"""The parts of slimpi-lab(1): several hosts on one machine, for MPI programs.

system    calls of the kernel and of its tools
links     rates, and the shaping of a host's link
hosts     namespaces that are hosts, the switch between them, and its counters
launch    finds the MPI, and makes the command that starts a program on the hosts
inside    process 1 of a lab
front     the process that the user started, and requests to running labs
"""
