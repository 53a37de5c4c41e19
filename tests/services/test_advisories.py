"""Known holes in what is installed here, where an advisory source can be reached."""

import json
import subprocess
import sys
import warnings

import pytest

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]

SERVICES = ("pypi", "osv")
LONGEST = 140  # seconds, for all packages
# How the program's complaint names what kept it from a source.
UNREACHABLE = (
    *("ConnectionError", "ConnectTimeout", "ReadTimeout", "NewConnectionError", "ProxyError"),
    *("NameResolutionError", "Max retries exceeded", "Connection refused"),
    *("Could not connect to", "Failed to connect"),
)


def ask(service: str) -> list[dict[str, object]] | None:
    """What a source knows of each package that is installed; None if it cannot be reached.

    Any other failure of the program is one of this test. That it is content means nothing: a mirror
    that has the files alone knows no package, and pip-audit passes over those.
    """
    quietly = ["--format", "json", "--progress-spinner", "off", "--timeout", "20"]
    command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "-s", service]
    try:
        done = subprocess.run(
            [*command, *quietly], capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return None  # it has answered some questions, and not all
    if not done.stdout.strip():
        assert any(word in done.stderr for word in UNREACHABLE), done.stderr
        return None
    found: list[dict[str, object]] = json.loads(done.stdout)["dependencies"]
    return found


def test_nothing_that_is_installed_has_a_known_hole() -> None:
    for service in SERVICES:
        audited = [each for each in ask(service) or [] if "skip_reason" not in each]
        if audited:
            holes = {each["name"]: each["vulns"] for each in audited if each["vulns"]}
            assert not holes
            return
    warnings.warn("no advisory source can be reached: nothing was audited", stacklevel=1)
