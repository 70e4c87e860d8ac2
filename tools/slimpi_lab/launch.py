# SPDX-License-Identifier: BSD-3-Clause
"""Finds the MPI of a program and makes the command that starts the program on the hosts."""
import os
import re
import shutil
import subprocess

from .hosts import DEVICE
from .system import LabError, say


def _mpi_of(mpiexec):
    """Returns the MPI that a launcher belongs to; None if it is another MPI or if the launcher
    cannot be run. The version of prterun names no MPI. Without its files of texts, prterun prints
    an error that contains its own name."""
    try:
        said = subprocess.run([*mpiexec, "--version"], capture_output=True, text=True)
    except OSError:
        return None
    if "HYDRA" in said.stdout:
        return "mpich"
    openmpi = re.search("Open.?MPI|OpenRTE|PRRTE|/prte/", said.stdout + said.stderr)
    return "openmpi" if openmpi else None


# By MPI: the pattern of the line in which ldd shows the MPI's library.
LIBRARIES = {"openmpi": r"libmpi\.so\.[24]0 => (\S+)", "mpich": r"libmpi(?:ch)?\.so\.12 => (\S+)"}


def _linked(program):
    """Returns the MPI that a program is linked to and the mpiexec that is installed beside its
    library; (None, None) if the program is linked to none."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for mpi, library in LIBRARIES.items():
        if found := re.search(library, said):
            beside = os.path.join(os.path.dirname(os.path.dirname(found[1])), "bin", "mpiexec")
            return mpi, beside
    return None, None


def find_mpi(program, mpi, mpiexec, standard):
    """Returns the MPI of the program and the words of its mpiexec. It is the MPI that the user
    asked for, else the one that the program is linked to, else that of the standard mpiexec."""
    path = shutil.which(program)
    if not path:
        raise LabError(f"{program}: not found, or not executable", 127)
    beside = None
    if not mpi and not mpiexec:
        mpi, beside = _linked(path)
    named = {"mpich": ["mpiexec.mpich", "mpiexec.hydra"], "openmpi": ["mpiexec.openmpi"]}
    choices = [beside, standard, *named.get(mpi, named["mpich"] + named["openmpi"]), "mpiexec"]
    for choice in [mpiexec] if mpiexec else filter(None, choices):
        words = [choice] if os.path.exists(choice) else choice.split()
        found = _mpi_of(words)
        if found and mpi in (found, None):
            return found, words
    wanted = {"mpich": "MPICH", "openmpi": "Open MPI"}.get(mpi, "MPICH or Open MPI")
    raise LabError(f"{mpiexec or 'mpiexec'}: not found, or not of {wanted}: install it or name one "
                   "with --mpiexec", 2)


def _remote_shell(hosts, private):
    """Writes a script that mpiexec calls in the place of ssh, and returns its path. The script
    ignores ssh's options and runs the command inside the host."""
    cases = "\n".join(f"  {host.name}) process={host.process} ;;" for host in hosts)
    path = f"{private}/remote-shell"
    with open(path, "w") as file:
        file.write(f"""#!/bin/sh
while :; do case $1 in -*) shift ;; *) break ;; esac; done
case $1 in
{cases}
  *) echo "slimpi-lab: there is no host $1" >&2; exit 255 ;;
esac
shift
exec nsenter --target=$process --net --uts --ipc --mount -- /bin/sh -c "$*"
""")
    os.chmod(path, 0o755)
    return path


def _mpich(options, hosts, environment, remote_shell):
    preload = os.path.realpath(f"{options.parts}/slimpi-lab-exit.so")
    if options.finalize == "lab" and not os.path.exists(preload):
        say("slimpi-lab-exit.so was not found: MPICH 4.0 may hang in MPI_Finalize")
    elif options.finalize == "lab":
        others = environment.get("LD_PRELOAD", os.environ.get("LD_PRELOAD", ""))
        environment["LD_PRELOAD"] = f"{preload}:{others}".rstrip(":")
    words = ["-launcher", "ssh", "-launcher-exec", remote_shell, "-iface", DEVICE,
             "-hosts", ",".join(host.name for host in hosts), "-ppn", str(options.ranks_per_host)]
    for name, value in environment.items():
        words += ["-genv", name, value]
    return words


def _openmpi(options, hosts, environment, remote_shell, private):
    words = ["--host", ",".join(f"{host.name}:{options.ranks_per_host}" for host in hosts),
             "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "--allow-run-as-root"]
    for name, value in (("plm_rsh_agent", remote_shell), ("pml", "ob1"), ("btl", "tcp,self,vader"),
                        ("btl_tcp_if_include", DEVICE), ("oob_tcp_if_include", DEVICE),
                        ("orte_tmpdir_base", private), ("prte_tmpdir_base", private)):
        words += ["--mca", name, value]
    for name, value in environment.items():
        words += ["-x", f"{name}={value}"]
    return words


def command(options, hosts, private):
    """Returns the words of a command that starts the program. It must be run inside the first
    host."""
    ranks = len(hosts) * options.ranks_per_host
    environment = {
        "UCX_TLS": "tcp,self",  # UCX sees through the namespaces and would use shared memory
        "UCX_NET_DEVICES": DEVICE,
        "SLIMPILAB": options.directory,
        "SLIMPILAB_INTERFACE": DEVICE,
        "SLIMPILAB_RATE": str(min((r for h in hosts for r in h.rate.values() if r), default=0)),
        **options.environment,
    }
    script = _remote_shell(hosts, private)
    words = (_openmpi(options, hosts, environment, script, private) if options.mpi == "openmpi" else
             _mpich(options, hosts, environment, script))
    return [*options.mpiexec, *words, "-n", str(ranks), *options.program]
