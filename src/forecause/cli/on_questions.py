"""Commands that ask a run: what follows a change, what caused an event, what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from forecause.cli.options import AsJson, Folder, one_or_all
from forecause.cli.pairs import read_pairs
from forecause.cli.writing import write_table

OutTable = Annotated[Path | None, typer.Option(help="Also write the table to this CSV file.")]
Again = Annotated[
    list[Path] | None,
    typer.Option(help="The run's data, if it is not where it was; repeatable."),
]


def response(
    folder: Folder,
    source: Annotated[
        str, typer.Option(help="The variable that is raised, or a level of a label (name=level).")
    ],
    horizon: Annotated[int, typer.Option(help="For how many rows.")] = 12,
    amount: Annotated[
        float | None,
        typer.Option(help="By how much.  [default: one standard deviation]"),
    ] = None,
    held: Annotated[
        bool, typer.Option("--held", help="Raised from then on, instead of once.")
    ] = False,
    through: Annotated[
        str | None, typer.Option(help="Only what passes through this variable.")
    ] = None,
    data: Again = None,
    out: OutTable = None,
    json: AsJson = False,
) -> None:
    """The total effect of a variable on all others over time. With 90 % bands."""
    from forecause.common.files import examine_file
    from forecause.report.answers import show_answer
    from forecause.store.run_folder import load_run

    if out:
        examine_file(out)
    again = one_or_all(data) if data else None
    told = load_run(folder).response(source, horizon, amount, held, through, data=again)
    if out:
        write_table(told.table, out)
    share = {name: _known(value) for name, value in told.direct_share.items()}
    about = {"amount": told.amount, "direct_share": share, "sentence": told.sentence}
    show_answer(
        {"response": told.table if json else told.moved}, [told.sentence, told.caveat], json, about
    )


def explain(
    folder: Folder,
    at: Annotated[
        str | None,
        typer.Option(help="When it happened: a time or a row.  [default: all of --data]"),
    ] = None,
    until: Annotated[str | None, typer.Option(help="When it ended.")] = None,
    target: Annotated[str | None, typer.Option(help="The variable that gave the alarm.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The rows of the event, if the run's data has them not.")
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Your own graph in place of the run's: graph.json, a run's folder, or a CSV file "
            "of pairs source,target."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Also write the run's page with the event on it.")
    ] = None,
    out: OutTable = None,
    json: AsJson = False,
) -> None:
    """What caused an event: the likeliest variables first."""
    from forecause.common.files import examine_file
    from forecause.report.answers import records, show_answer
    from forecause.store.run_folder import load_run

    for file in filter(None, (out, page)):
        examine_file(file)
    known, run = None if graph is None else _known_graph(graph), load_run(folder)
    told = run.explain(at, until, target, data=data, graph=known)
    if page:
        run.report(page, event=told)
    if out:
        write_table(told.causes, out)
    about = {
        "p_value": told.p_value,
        "start": str(told.start),
        "end": str(told.end),
        "paths": records(told.paths),
        "sentence": told.sentence,
    }
    tables = {"causes": told.causes}
    if not json and len(told.paths):
        tables["paths"] = told.paths
    show_answer(tables, [told.sentence, *told.notes, told.caveat], json, about)


def changed(
    folder: Folder,
    before: Annotated[
        str, typer.Option(help="A period START..END of the run's data, a file or a run's folder.")
    ],
    after: Annotated[str, typer.Option(help="Another one.")],
    out: OutTable = None,
    json: AsJson = False,
) -> None:
    """Which links vanished, appeared or changed between two periods."""
    from forecause.common.files import examine_file
    from forecause.report.answers import show_answer
    from forecause.store.run_folder import load_run

    if out:
        examine_file(out)
    told = load_run(folder).changed(_part(before), _part(after))
    if out:
        write_table(told.links, out)
    tables = {"links": told.links, "noise": told.noise}
    show_answer(tables, [told.sentence, told.caveat], json, {"sentence": told.sentence})


def _part(text: str) -> Any:
    """A period, a file, or the run in a folder."""
    from forecause.store.run_folder import load_run

    path = Path(text)
    if path.is_dir():
        return load_run(path)
    return path if path.exists() else text


def _known_graph(path: Path) -> Any:
    """A graph that was saved, or pairs (source, target) from a CSV file."""
    from forecause.store.run_folder import load_graph

    return read_pairs(path) if path.suffix.lower() == ".csv" else load_graph(path)


def _known(value: float) -> float | None:
    return float(value) if value == value else None
