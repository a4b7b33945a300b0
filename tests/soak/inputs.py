"""Malformed inputs without end: files, objects, settings and saved runs, all drawn from a seed.

A trial is a name and a call; the call may do its work or raise an InputError of one short line.
"""

import io
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file

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


ODD_JSON = (  # as written into a file; some of it is no JSON
    *("null", "true", "false", "-1", "0", "-0", "-0.0", "1", "7", "1.5", "1e308", "-1e308"),
    *("1" + "0" * 30, "9223372036854775808", "9007199254740993", "1" + "0" * 400, "9" * 5000),
    *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "5e-324", "1e3", "01", "1."),
    *('"NaN"', '"nan"', '"Infinity"', '"-Infinity"', '"inf"', '"1e400"', '"1"', '"0.5"', '"true"'),
    *(
        '""',
        '"x"',
        '"a"',
        '"' + "9" * 30 + '"',
        '"\\u0000"',
        '"=1"',
        f'"{"x" * 5000}"',
        '"\\ud800"',
    ),
    *("[]", "{}", "[1]", "[[]]", "[null]", "[true]", "[false, true]", '["1"]', "[-1, -1, -1]"),
    *('{"a": 1}', '{"a": NaN}', "[Infinity]", "[1e400]", '[["a", 1]]', '{"": []}', '{"a": "inf"}'),
    *("[" * 500 + "]" * 500, "[" * 100_000 + "]" * 100_000, '{"a":' * 1000 + "1" + "}" * 1000),
)
ODD_NUMBERS = (float("nan"), float("inf"), -1.0, 0.0, 1e308, -1e308, 5e-324, 1e-30, 1e30, 2.5)


CHANGED = "the value that is changed"
HASHES = re.compile(rb'(?<="files": )\{[^{}]*\}')


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
            dated,
            max_lag=2,
            forecaster=fc.forecasters.MLP(head="gaussian").trained_with(max_steps=1000),
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
    """Everything drawn from a seed and the number of the trial; `folder` is for files."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.folder = folder
        self.table = pd.DataFrame(chain(60), columns=list("abc"))
        self.run = fc.discover(self.table, max_lag=1, forecaster="linear").with_power(repeats=1)
        self.saved = [
            run.save(folder / f"saved-{number}")
            for number, run in enumerate([self.run, *_runs_of_every_kind()])
        ]
        self.files = self._whole_files()
        self.places: dict[Path, dict] = {}

    def trial(self, number):
        """The name and the call of a trial, the same whatever was tried before."""
        self.rng = np.random.default_rng([self.seed, number])
        return getattr(self, ORDER[number % len(ORDER)])()

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
        whole = self.saved[self.rng.integers(len(self.saved))]
        shutil.copytree(whole, folder)
        names = ["run.json", "report.json", "power.json", "graph.json", "model.safetensors"]
        names = [name for name in names if (folder / name).exists()]
        file = folder / names[self.rng.integers(len(names))]
        if self.rng.random() > 0.7:
            where = "bytes"
            file.write_bytes(self._damaged(file.read_bytes()))
        elif file.suffix == ".json":
            where = self._change(whole / file.name, file)
        else:
            where = self._change_array(file)
        if self.rng.random() < 0.8:  # the schema must do without the hashes
            about = folder / "run.json"
            about.write_bytes(HASHES.sub(b"{}", about.read_bytes(), count=1))
        asked = [self.rng.random() < 0.3 for _ in range(5)]
        return f"saved run {file.name} {where}", lambda: self._ask_all(folder, *asked)

    def _ask_all(self, folder, total, bands, done, shares, plain):
        """What can be asked of a run that was loaded; saving it writes its page, too."""
        run = fc.load(folder)
        first, second = run.data.variables[:2]
        run.forecast(2, bands=bands)
        run.effect(first, second, 1, total=total)
        if done:
            run.simulate_do({first: 1.0}, 2)
        if shares:
            run.variance_shares(3)
        if plain:
            run.graph.to_csv()
            fc.score_graph(run.graph, self.run.graph)
        run.save(self.folder / "again", overwrite=True)
        terminal.show_discovery(run, folder)

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

    def _change(self, whole, file):
        """Replace, remove or repeat one value of a JSON document.

        Every kind of field is as likely as any other, however deep and however often it is there.
        """
        content = json.loads(whole.read_text())
        alike = self._places_in(whole, content)
        same = alike[self.rng.integers(len(alike))]
        *above, key = same[self.rng.integers(len(same))]
        here = content
        for step in above:
            here = here[step]
        where = ".".join(str(step) for step in (*above, key))
        how, odd = self.rng.random(), ODD_JSON[self.rng.integers(len(ODD_JSON))]
        if how < 0.15:
            del here[key]
            odd, where = "", f"{where} removed"
        elif how < 0.25 and isinstance(here, list):
            here.append(here[key])
            odd, where = "", f"{where} repeated"
        else:
            here[key], where = CHANGED, f"{where} = {odd[:60]}"
        file.write_text(json.dumps(content).replace(json.dumps(CHANGED), odd))
        return where

    def _places_in(self, whole, content):
        """The paths of a document, those of one kind together."""
        if whole not in self.places:
            kinds = {}
            for path in _paths(content):
                kinds.setdefault(tuple("*" if type(k) is int else k for k in path), []).append(path)
            self.places[whole] = list(kinds.values())
        return self.places[whole]

    def _change_array(self, file):
        """Change, remove or reshape one array of the weights."""
        arrays = load_file(file)
        name = sorted(arrays)[self.rng.integers(len(arrays))]
        values = arrays.pop(name)
        how = ("number", "all", "shape", "cut", "kind", "more", "gone")[self.rng.integers(7)]
        odd = ODD_NUMBERS[self.rng.integers(len(ODD_NUMBERS))]
        with np.errstate(all="ignore"):
            if how == "number" and values.size:
                values.flat[self.rng.integers(values.size)] = np.array(odd).astype(values.dtype)
            elif how == "all":
                values = np.full_like(values, np.array(odd).astype(values.dtype))
        if how == "shape":
            values = values.reshape(-1)
        elif how == "cut":
            values = values[..., :-1] if values.ndim else values.reshape(1)
        elif how == "kind":
            values = values.astype(("i8", "f4", "f8", "?")[self.rng.integers(4)])
        elif how == "more":
            values = np.stack([values, values])
        if how != "gone":
            arrays[name] = np.ascontiguousarray(values)
        save_file(arrays, file)
        return f"{name} {how} {odd if how in ('number', 'all') else ''}"

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


SHARES = {  # of a hundred and fifty; a third are damaged runs
    "setting": 40,
    "rule": 20,
    "file": 25,
    "thing": 5,
    "damaged_run": 50,
    "odd_file": 4,
    "bound": 6,
}
ORDER = (
    np.random.default_rng(0).permutation(np.repeat(list(SHARES), list(SHARES.values()))).tolist()
)


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
