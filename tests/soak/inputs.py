"""Malformed inputs without end: files, objects, settings and saved runs, all drawn from a seed.

A trial is a name and a call; the call may do its work or raise an InputError of one short line.
"""

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

import forecause as fc
from forecause.cli.ending import one_line
from forecause.config import GROUP_OF
from forecause.edges.knowledge import Knowledge, read_knowledge
from forecause.report import terminal
from systems import chain

ODD_TEXTS = (
    *("", " ", "\0", "\n", "a\nb", "x" * 5000, "=1+1", "-->", "nan", "inf", "1e400", "-1", "auto"),
    *("\ud800", "שלום", "\u202e", "a,b", '"', "'", "[1]", "{}", "None", "true", "../../etc", "é"),
    *("9" * 400, "1-99999999999999", "a -> b", "a -> b @ 1-99999999999", "* -> *", "1h", "0", "π"),
)
ODD_VALUES = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, -(2**70), 0.5, -0.0, 1e-9, 1e300, 1e-300),
    *(
        float("nan"),
        float("inf"),
        10**400,
        1 + 2j,
        b"x",
        b"\xff",
        (),
        [],
        {},
        [[]],
        [None],
        {"a": 1},
    ),
    *(
        [1, "a"],
        ("a", "b", 1),
        [("a", "b", 2**70)],
        range(3),
        object(),
        np.float32(2),
        np.array([1]),
    ),
)


ODD_JSON = (
    *(None, True, False, -1, 0, 1, 7, 1.5, 1e308, -1e308, 10**30, 2**63),
    *(float("nan"), float("inf")),
    *("", "x", "a", "9" * 30, "\0", "=1", "x" * 5000, "Infinity", [], {}, [1], [[]], [None]),
    *({"a": 1}, {"a": float("nan")}, [float("inf")], [["a", 1]], [-1, -1, -1], {"": []}),
)


def _device(path):
    path.symlink_to(("/dev/zero", "/dev/urandom", "/dev/full")[len(path.name) % 3])


def _sparse(path):
    with path.open("wb") as file:
        file.truncate(3 * 2**30)


def _brackets(path):
    path.write_bytes(b"[" + b"[]," * 7_000_000 + b"[]]")


def _scored(lag):
    graph = fc.LaggedGraph.from_edges(["a", "b"], lag, [("a", "b", lag)])
    fc.score_graph(graph, graph)


def _runs_of_every_kind():
    """Runs that between them save every field: labels, domains, seasons, regimes, marks."""
    rng = np.random.default_rng(0)
    values = chain(240)
    hours = pd.date_range("2024-01-01", periods=240, freq="h")
    dated = pd.DataFrame(values, columns=list("abc"), index=hours)
    dated["a"] += 3 * np.sin(np.arange(240) * 2 * np.pi / 24)
    labels = dated.assign(mood=rng.choice(["good", "bad", "none"], 240))
    domains = pd.DataFrame(values, columns=list("abc")).assign(
        place=np.repeat(["x", "y"], 120), who=np.repeat(["p", "q", "r"], 80)
    )
    return [
        fc.discover(fc.read(labels, labels=["mood"]), max_lag=1, forecaster="linear"),
        fc.discover(domains, max_lag=1, domain="place", series="who", forecaster="linear"),
        fc.discover(dated, max_lag=1, forecaster="linear", regimes=2),
        fc.discover(
            dated, max_lag=2, forecaster=fc.MLP(head="gaussian").trained_with(max_steps=1000)
        ),
    ]


def _paths(content, above=()):
    """Where every value of a JSON document is, lists and objects included."""
    keys = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in keys:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from _paths(value, (*above, key))


class Inputs:
    """Everything drawn from one seed; `folder` is for files."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.folder = folder
        self.table = pd.DataFrame(chain(60), columns=list("abc"))
        self.run = fc.discover(self.table, max_lag=1, forecaster="linear").with_power(repeats=1)
        self.saved = [
            run.save(folder / f"saved-{number}")
            for number, run in enumerate([self.run, *_runs_of_every_kind()])
        ]
        self.files = self._whole_files()

    def odd(self):
        """Any value that somebody could pass by mistake."""
        pool = ODD_TEXTS if self.rng.random() < 0.5 else ODD_VALUES
        return pool[self.rng.integers(len(pool))]

    def setting(self):
        """One to three options with odd values."""
        names = self.rng.choice([*GROUP_OF, "max_lag"], size=self.rng.integers(1, 4), replace=False)
        asked = {str(name): self.odd() for name in names}
        return f"settings {asked!r:.300}", lambda: fc.Config.of(**asked).to_json()

    def rule(self):
        """Knowledge in odd words."""
        parts = [
            "a",
            "b",
            "*",
            "->",
            "<-",
            "@",
            "1",
            "-",
            ",",
            "self",
            "others",
            "[",
            "?",
            "9" * 30,
        ]
        text = " ".join(self.rng.choice(parts, size=self.rng.integers(1, 9)))
        return f"rule {text}", lambda: Knowledge.of([text]).allowed(["a", "b", "[x]"], 3)

    def file(self):
        """A file of every kind, damaged."""
        name = list(self.files)[self.rng.integers(len(self.files))]
        content = self._damaged(self.files[name])
        path = self.folder / f"damaged{Path(name).suffix}"
        read = fc.LaggedGraph.from_json if name == "graph.json" else fc.Panel.of

        def call():
            path.write_bytes(content)
            read(path)

        return f"file {name} {content[:200]!r}", call

    def thing(self):
        """An object that is nearly a table, under odd roles."""
        rows, columns = int(self.rng.integers(0, 30)), int(self.rng.integers(0, 4))
        cells = [[self._cell() for _ in range(columns)] for _ in range(rows)]
        names = [self.odd() for _ in range(columns)]
        kind = self.rng.integers(6)
        roles = ("time", "series", "domain", "labels", "rows", "missing", "every", "interpolate")
        asked = {role: self.odd() for role in roles if self.rng.random() < 0.1}

        def call():
            if kind == 0:
                data = np.array(cells, dtype=object)
            elif kind == 1:
                data = {str(n): [row[i] for row in cells] for i, n in enumerate(names)}
            elif kind == 2:
                data = cells
            elif kind == 3:
                odd = cells[0][0] if cells and cells[0] else 1
                data = self.table.assign(z=pd.Series([odd] * 60, dtype=object))
            else:
                try:
                    data = pd.DataFrame(cells, columns=pd.Index(names, dtype=object), dtype=object)
                except Exception:  # pandas itself makes no table of it
                    return
            config = fc.Config(**asked)
            fc.discover(data, max_lag=1, forecaster="linear", config=config)

        return f"object {kind} {names!r:.100} {asked!r:.200}", call

    def damaged_run(self):
        """A saved run with one value or some bytes changed; then all is asked of it."""
        folder = self.folder / "damaged-run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.saved[self.rng.integers(len(self.saved))], folder)
        names = ["run.json", "report.json", "power.json", "graph.json", "model.safetensors"]
        names = [name for name in names if (folder / name).exists()]
        file = folder / names[self.rng.integers(len(names))]
        if file.suffix == ".json" and self.rng.random() < 0.7:
            content = json.loads(file.read_text())
            where = self._change(content)
            file.write_text(json.dumps(content))
        else:
            where = "bytes"
            file.write_bytes(self._damaged(file.read_bytes()))
        about = folder / "run.json"
        if self.rng.random() < 0.8:  # the schema must do without the hashes
            try:
                content = json.loads(about.read_text())
                content["files"] = {}
                about.write_text(json.dumps(content))
            except (ValueError, TypeError):
                pass

        def call():
            run = fc.load(folder)
            run.forecast(2)
            run.effect(run.data.variables[0], run.data.variables[1], 1)
            run.report(self.folder / "page.html")
            run.save(self.folder / "again", overwrite=True)
            terminal.show_discovery(run, folder)

        return f"saved run {file.name} {where}", call

    def odd_file(self):
        """A pipe, a device, a sparse file or endless brackets, where a file is expected."""
        place = self.folder / "odd"
        shutil.rmtree(place, ignore_errors=True)
        saved = self.saved[self.rng.integers(len(self.saved))]
        names = ["run.json", "graph.json", "report.json", "power.json", "model.safetensors"]
        names += ["table.csv", "table.npy", "graph.json alone", "page.html", "rules.txt"]
        name = names[self.rng.integers(len(names))]
        kinds = {"pipe": os.mkfifo, "device": _device, "sparse": _sparse, "brackets": _brackets}
        kind = list(kinds)[self.rng.integers(len(kinds))]

        def call():
            if name in names[:5]:
                shutil.copytree(saved, place)
                file, read = place / name, lambda _: fc.load(place)
            else:
                place.mkdir()
                file = place / name.removesuffix(" alone")
                read = {".json": fc.load_graph, ".html": fc.load_graph, ".txt": read_knowledge}.get(
                    file.suffix, fc.Panel.of
                )
            file.unlink(missing_ok=True)
            kinds[kind](file)
            read(file)

        return f"{kind} in place of {name}", call

    def bound(self):
        """Numbers without bounds, asked of a run or of a graph."""
        number = self.odd() if self.rng.random() < 0.5 else int(10 ** self.rng.uniform(4, 30))
        lag = int(10 ** self.rng.uniform(8, 18))
        asked = {
            "steps": lambda: self.run.forecast(number),
            "bands": lambda: self.run.forecast(number, bands=True),
            "draws": lambda: self.run.simulate_do({}, 2, draws=number),
            "score": lambda: _scored(lag),
        }
        name = list(asked)[self.rng.integers(len(asked))]
        return f"{name} {number!r:.100} {lag}", asked[name]

    def _change(self, content):
        """Replace, remove or repeat one value of a JSON document.

        Every kind of field is as likely as any other, however deep and however often it is there.
        """
        kinds = {}
        for path in _paths(content):
            kinds.setdefault(tuple("*" if type(k) is int else k for k in path), []).append(path)
        alike = list(kinds.values())[self.rng.integers(len(kinds))]
        *above, key = alike[self.rng.integers(len(alike))]
        here = content
        for step in above:
            here = here[step]
        where = ".".join(str(step) for step in (*above, key))
        how = self.rng.random()
        if how < 0.2:
            del here[key]
            return f"{where} removed"
        if how < 0.3 and isinstance(here, list):
            here.append(here[key])
            return f"{where} repeated"
        here[key] = ODD_JSON[self.rng.integers(len(ODD_JSON))]
        return f"{where} = {here[key]!r}"

    def _cell(self):
        return self.rng.normal() if self.rng.random() < 0.8 else self.odd()

    def _damaged(self, content: bytes) -> bytes:
        """Some bytes changed, a piece cut out, moved or repeated."""
        found = bytearray(content)
        for _ in range(int(self.rng.integers(1, 5))):
            if not found:
                break
            start = int(self.rng.integers(len(found)))
            end = start + int(self.rng.integers(1, 40))
            how = self.rng.integers(5)
            if how == 0:
                found[start] = int(self.rng.integers(256))
            elif how == 1:
                del found[start:end]
            elif how == 2:
                found[start:start] = found[start:end]
            elif how == 3:
                found = found[: start + 1]
            else:
                text = ODD_TEXTS[self.rng.integers(len(ODD_TEXTS))]
                found[start:end] = text.encode("utf-8", "surrogatepass")
        return bytes(found)

    def _whole_files(self) -> dict[str, bytes]:
        graph, table = self.run.graph, self.table
        array, arrays, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
        np.save(array, table.to_numpy())
        np.savez_compressed(arrays, table.to_numpy())
        dated = table.assign(time=pd.date_range("2024", periods=60))
        dated.to_parquet(parquet)
        return {
            "table.csv": dated.to_csv(index=False).encode(),
            "table.tsv": table.to_csv(index=False, sep="\t").encode(),
            "table.npy": array.getvalue(),
            "table.npz": arrays.getvalue(),
            "table.parquet": parquet.getvalue(),
            "graph.json": graph.to_json().encode(),
            "edges.csv": graph.to_csv().encode(),
        }


KINDS = ("setting", "rule", "file", "thing", "damaged_run", "odd_file", "bound")


def verdict(call) -> str:
    """ok, refused, or what went wrong."""
    try:
        call()
    except fc.InputError as error:
        said = one_line(str(error))
        return "refused" if "\n" not in said and said.strip() else f"odd sentence: {said!r}"
    except fc.ForecauseError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return "ok"
