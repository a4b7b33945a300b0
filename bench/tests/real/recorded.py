"""Small folders in the formats of the recorded suites, with truths that are known."""

import numpy as np
from scipy.io import savemat

GENES = ("G1", "G2", "G3")
# (source, target): G1 drives G2, G2 drives G3
GENE_EDGES = {("G1", "G2"), ("G2", "G3")}


def driven(rows, seed, drives=((1, 0), (2, 1)), variables=3):
    """A linear system in which each (target, source) acts strongly at lag 1."""
    rng = np.random.default_rng(seed)
    weights = 0.3 * np.eye(variables)
    for target, source in drives:
        weights[target, source] = 0.6
    values = np.zeros((rows + 20, variables))
    for t in range(1, len(values)):
        values[t] = weights @ values[t - 1] + rng.standard_normal(variables)
    return values[20:]


def write_dream3(folder, name="dream3_10_0", series=4, points=21, seed=0):
    """A DREAM3 table: the time restarts at 0 with every series."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(f'"{word}"' for word in ("Time", *GENES))]
    for number in range(series):
        for step, row in enumerate(driven(points, seed + number)):
            lines.append("\t".join(str(value) for value in (step * 10.0, *row)))
    (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    pairs = [(s, t) for s in GENES for t in GENES if s != t]
    truth = [f"{s}\t{t}\t{int((s, t) in GENE_EDGES)}" for s, t in pairs]
    (folder / f"{name}_true.txt").write_text("\n".join(truth) + "\n")


def write_netsim(folder, name="fMRI_15", subjects=3, steps=60):
    """A NetSim file: `net` goes from row to column and has -1 on its diagonal."""
    folder.mkdir(parents=True, exist_ok=True)
    net = np.zeros((subjects, 3, 3))
    net[:, 0, 1] = 0.4
    net[1:, 1, 2] = 0.4  # the first subject lacks this one
    net[:, range(3), range(3)] = -1
    ts = [
        driven(steps, subject, [(j, i) for i, j in zip(*np.nonzero(net[subject] > 0), strict=True)])
        for subject in range(subjects)
    ]
    savemat(folder / f"{name}.mat", {"ts": np.concatenate(ts), "net": net, "Nnodes": 3})


def write_causaltime(folder, item="pm25", samples=5, steps=30):
    """A CausalTime folder: three variables and three residuals; 0 drives 1 and itself."""
    place = folder / item
    place.mkdir(parents=True, exist_ok=True)
    observed = np.stack([driven(steps, sample, [(1, 0)]) for sample in range(samples)])
    residuals = np.full_like(observed, 1e6)
    np.save(place / "gen_data.npy", np.concatenate([observed, residuals], axis=2))
    graph = np.zeros((3, 3))
    graph[1, 0] = graph[0, 0] = 1
    np.save(place / "graph.npy", graph)


def write_cdml(folder, complexity=30, rows=40):
    """A CDML system: columns of data and truth in different orders; X1 drives Y1 at lag 2."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"cdml_feat=2_minlag=1_maxlag=2_cplx={complexity}_samples={rows}_7"
    values = np.random.default_rng(0).normal(size=(rows, 2))
    lines = ["X1,Y1", *(f"{a},{b}" for a, b in values.tolist())]
    (folder / f"{stem}_data.csv").write_text("\n".join(lines) + "\n")
    places = ["Y1_t", "Y1_t-1", "Y1_t-2", "X1_t", "X1_t-1", "X1_t-2"]
    rows_of_truth = [
        f"{cause}," + ",".join(str(float((cause, p) == ("X1_t-2", "Y1_t"))) for p in places)
        for cause in places
    ]
    (folder / f"{stem}_target.csv").write_text(
        "\n".join(["," + ",".join(places), *rows_of_truth]) + "\n"
    )


def write_rivers(folder, rows=40):
    """Two gauges, the first above the second, with a gap in the second."""
    folder.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(0).normal(size=(rows, 2)).tolist()
    lines = [
        f"2024-01-01 00:{row:02d}:00,{a},{b if row != 5 else ''}"
        for row, (a, b) in enumerate(values)
    ]
    (folder / "flood.csv").write_text("\n".join(["datetime,59,77", *lines]) + "\n")
    np.save(folder / "summary_matrix.npy", np.array([[0, 0], [1, 0]]))
