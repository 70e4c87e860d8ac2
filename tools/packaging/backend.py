# SPDX-License-Identifier: BSD-3-Clause
"""What pip calls to build slimpi from its sources (PEP 517)."""
import os
import subprocess


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes the wheel by build-wheel and returns its name. pip's option --config-settings=build=DIR
    takes what is already built in DIR."""
    build_wheel = os.path.join(os.path.dirname(os.path.abspath(__file__)), "build-wheel")
    command = [build_wheel, "--directory", wheel_directory]
    build = (config_settings or {}).get("build")
    if build:
        command += ["--build", build]
    wheel = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return os.path.basename(wheel.splitlines()[-1])
