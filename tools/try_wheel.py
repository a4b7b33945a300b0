"""Install the wheel of dist/ into a clean environment and use it there: `make release`.

Runs `forecause demo` and the Python lines of the README, on a table that it simulates; the study
is not part of the wheel, and `forecause bench` must say where it is.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).parent.parent


def readme_lines() -> str:
    """The Python example of the README."""
    found = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def main() -> None:
    (wheel,) = (HERE / "dist").glob("forecause-*.whl")
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "venv"
        venv.create(place, with_pip=True)
        programs = place / ("Scripts" if os.name == "nt" else "bin")

        def run(program: str, *arguments: str) -> None:
            called = [str(programs / program), *arguments]
            print("$", program, *arguments, flush=True)  # noqa: T201
            subprocess.run(called, cwd=folder, env=plain, check=True)

        constraints = str(HERE / "constraints.txt")
        run("python", "-m", "pip", "install", "--quiet", "--constraint", constraints, str(wheel))
        run("forecause", "demo")
        run("forecause", "simulate", "--nodes", "4", "--rows", "500", "--out", ".")
        Path(folder, "lines.py").write_text(readme_lines(), encoding="utf-8")
        run("python", "lines.py")
        if not Path(folder, "report.html").exists():
            sys.exit("The lines of the README wrote no report.")
        asked = [str(programs / "forecause"), "bench"]
        told = subprocess.run(asked, cwd=folder, env=plain, capture_output=True, text=True)
        print("$ forecause bench", told.stderr, sep="\n", flush=True)  # noqa: T201
        if told.returncode != 2 or "pip install ./bench" not in told.stderr:
            sys.exit("The command bench did not say which package it is part of.")


if __name__ == "__main__":
    main()
