# SPDX-License-Identifier: BSD-3-Clause
# slimpi-run --torch puts this directory first in PYTHONPATH, so that each Python that the program
# starts imports this file. The file then imports the sitecustomize that it hides.
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _here]
_package = os.path.join(os.path.dirname(_here), "python")  # missing in the wheel: it is installed
if os.path.isdir(os.path.join(_package, "slimpi")):
    sys.path.append(_package)
_this = sys.modules.pop("sitecustomize")
try:
    import sitecustomize  # noqa: F401 (the next one)
except ModuleNotFoundError as error:
    if error.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = _this
try:
    import slimpi._run
except ModuleNotFoundError:
    print(f"slimpi-run: --torch: {sys.executable} has no package slimpi: pip install it there, or "
          "use the Python that it is installed for", file=sys.stderr)
else:
    slimpi._run.start()
