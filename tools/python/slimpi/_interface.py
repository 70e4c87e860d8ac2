# SPDX-License-Identifier: BSD-3-Clause
"""Makes MPICH use the network interfaces that the user has named for PyTorch."""
import glob
import os
import socket

from ._mpi import Error

_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def matching(variable, value, names):
    """Returns which of `names` the value of a variable selects, in the order of the value."""
    exclude, exact = False, variable == _VARIABLES[0]
    if not exact:
        exclude, value = value.startswith("^"), value.removeprefix("^")
        exact, value = value.startswith("="), value.removeprefix("=")
    # In NCCL's variable a port may follow the name.
    wanted = [word.strip().partition(":")[0] for word in value.split(",") if word.strip()]
    if exclude:
        return [name for name in names if name != "lo" and not any(
            name == word if exact else name.startswith(word) for word in wanted)]
    return list(dict.fromkeys(name for word in wanted for name in names if (
        name == word if exact else name.startswith(word))))


def _rdma_ports():
    """Returns UCX's names for the ports of RDMA devices. These ports stay in use, because the
    variables of Gloo and NCCL concern only sockets."""
    return [f"{path.split('/')[4]}:{path.split('/')[6]}"
            for path in sorted(glob.glob("/sys/class/infiniband/*/ports/*"))]


def _is_up(name):
    try:
        with open(f"/sys/class/net/{name}/flags") as flags:
            return int(flags.read(), 16) & 1  # the bit IFF_UP
    except (OSError, ValueError):
        return True


def choose():
    """Sets MPICH's variables; call it before MPI_Init. Returns a text about the choice, or "" if
    there was none."""
    variable = next((name for name in _VARIABLES if os.environ.get(name)), None)
    if variable is None or "UCX_NET_DEVICES" in os.environ or "FI_TCP_IFACE" in os.environ:
        return ""
    here = [name for _, name in socket.if_nameindex() if _is_up(name)]
    chosen = matching(variable, os.environ[variable], here)
    if not chosen:
        raise Error(f"{variable}={os.environ[variable]} names no network interface "
                    f"of {os.uname().nodename}, which has {', '.join(here)}")
    os.environ["UCX_NET_DEVICES"] = ",".join(chosen + _rdma_ports())
    os.environ["FI_TCP_IFACE"] = chosen[0]
    return f"interface{'s' * (len(chosen) > 1)} {', '.join(chosen)} ({variable})"
