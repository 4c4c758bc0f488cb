"""Runs the Node client's tests against the session's daemon."""
import os
import pathlib
import shutil
import subprocess

import pytest

from daemon import MODEL


def test_node_client(daemon):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        [node, "--test", str(pathlib.Path(__file__).with_name("openai.test.mjs"))],
        env={**os.environ, "HEXAD_URL": daemon.url, "HEXAD_MODEL": MODEL},
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
