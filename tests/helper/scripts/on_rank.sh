#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: on_rank.sh RANK NAME=VALUE COMMAND...
# Behind mpiexec: runs the command, with the variable set on one rank alone.
rank=$1 setting=$2
shift 2
[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" != "$rank" ] || export "$setting"
exec "$@"
