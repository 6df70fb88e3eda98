"""Verbs that search, train and measure, and what shows the results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memlab.cli._memory import Place, day, memory_verb
from memlab.cli._options import (
    MOST,
    CrossValidate,
    Engine,
    Format,
    Out,
    Path_,
    Pool,
    app,
    assignments,
    import_systems,
    in_force,
    load_encoder,
    load_files,
    pipeline_lines,
    settings,
    verb,
)
from memlab.errors import DataError
from memlab.terminal import issue_lines, one_line, short

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.records import Dataset


@memory_verb
def search(
    place: Place,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "best",
    level: Annotated[str, typer.Option(help="turn or session.")] = "turn",
    k: Annotated[int, typer.Option(help="How many results.", min=1, max=MOST)] = 10,
    history: Annotated[
        Path | None, typer.Option(help="JSON messages before the question, which is made to stand alone.")
    ] = None,
    service: Annotated[str, typer.Option(help="The service that rewrites it, or recorded.")] = "recorded",
) -> None:
    """Search one memory of the store."""
    from memlab import lookup
    from memlab.pipelines import pipeline as read
    from memlab.records import LEVELS

    stages = read(pipeline)
    if history is not None:
        from memlab.conversation import read_history, rewrite

        query = rewrite(query, history=read_history(history), service=service)
        typer.echo(f"searched for: {query}", err=True)
    asked = place.asked(query)
    if level not in LEVELS:
        raise DataError(f"level is {level!r}; choose turn or session")
    chosen = place.chosen
    encoder = place.encoder.encoder
    bench = lookup.question_bench(
        place.store, place.dataset, asked, encoder=encoder, header=chosen.header, language=chosen.language
    )
    size = place.store.search.size(place.dataset, place.scope)
    if bench.turns.height < size:
        typer.echo(f"compared with {bench.turns.height:,} candidates of {size:,} turns", err=True)
    found = lookup.hit_rows(stages.run(bench, level=level).top(k), bench)
    if found.is_empty():
        typer.echo(f"no {level} of {one_line(place.scope)} matches {short(query)!r}")
    for row in found.iter_rows(named=True):
        where, speaker = one_line(row["turn_id"] or row["session_id"]), f"{row['speaker']}: " * bool(row["speaker"])
        typer.echo(
            f"{row['rank']:>3}  {row['score']:.4f}  {day(row['time'])}  {where}\n     {short(speaker + row['text'])}"
        )
    if found.height and not lookup.shares_words(bench):
        typer.echo("nothing shares a word with the question: these are the nearest by meaning")


@verb(in_force, "store", "encoder", "on_error", "language", "seed")
def evaluate(
    chosen: Settings,
    dataset: Annotated[list[Path], typer.Argument(help="LoCoMo, LongMemEval or chat-log files.", show_default=False)],
    pipeline: Annotated[
        list[str] | None,
        typer.Option(help="For example 'hybrid | mmr', or @FILE with one a line; may be repeated."),
    ] = None,
    out: Out = None,
    format: Format = None,
    pool: Pool = None,
    scope: Annotated[list[str] | None, typer.Option(help="Only this memory; may be repeated.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the comparison in the store.", show_default=False)] = None,
    cross_validate: CrossValidate = None,
    corrections: Annotated[
        Path | None,
        typer.Option(help="A file of errors in LoCoMo's evidence, as its audit has it; reported beside the original."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask no language model; estimate the tokens and the price of asking.")
    ] = False,
    engine: Engine = "local",
) -> None:
    """Measure pipelines on datasets, at turn and session level; write runs, qrels and reports.

    Without --pipeline: bm25, dense, hybrid and best, and best | learned: cross-validated where each dataset has
    conversations to learn from and the encoder gives token embeddings, else by the model that comes with memlab.

    Each run is kept in the store when it is there. The same command, also after an interruption, reads those back
    and runs the rest.
    """
    from memlab.datasets.corrections import CORRECTED, corrected
    from memlab.evaluate import stale_table, to_markdown
    from memlab.experiments import distinct, estimate, measurable, run
    from memlab.records import known_scope
    from memlab.retrieve import Bench

    texts = [text for each in pipeline or [] for text in pipeline_lines(each)] or chosen.pipelines
    stages = distinct(texts) if texts else None
    if dry_run and not stages:
        raise DataError("--dry-run estimates what pipelines would ask: name them with --pipeline")
    data: list[Dataset] = []
    for part in load_files(dataset, chosen, format=format, pool=pool):
        data.append(part.take(known_scope(one, part.scopes) for one in scope) if scope else part)
        typer.echo(data[-1].describe())
        for line in issue_lines(part):
            typer.echo(line)
        if "turn" not in measurable(data[-1]):
            typer.echo("no question cites turns: sessions alone are measured")
    if corrections:  # what cannot be read is said before anything is ranked
        for part in data:
            mended = corrected(part, corrections)
            n = mended.issues.filter(mended.issues["action"] == CORRECTED).height
            typer.echo(f"{corrections}: the evidence of {n:,} of {part.questions.height:,} questions is corrected")
    directory = out or Path(chosen.results) / ("" if len(data) > 1 else data[0].name)
    model = load_encoder(chosen, engine)
    if dry_run:
        for part in data:
            bench = Bench.of(part, encoder=model, store=chosen.store, header=chosen.header)
            typer.echo(str(estimate(stages or [], bench)))
        return
    done = run(
        stages,
        data,
        store=chosen.store,
        encoder=model,
        header=chosen.header,
        cross_validate=cross_validate,
        models=Path(chosen.results) / "cross-validated",
        name=name,
        seed=chosen.seed,
        engine=engine,
    )
    done.export(directory)
    typer.echo(f"{done}\n")
    for one in done.reports:
        if tied := one.provenance["ties"]:
            n = one.per_query.height
            typer.echo(f"{one.name}, {one.level}s: equal scores at place 10 in {tied:,} of {n:,} questions, by lot")
    for part in data:
        if part.questions["stale"].list.len().sum():
            ranked = [one for one, owner in zip(done.runs, done.cells["dataset"], strict=True) if owner == part.name]
            table = stale_table([one for one in ranked if one.level == "turn"], part)
            typer.echo(f"\nwhat must not come back, {part.name}\n\n{to_markdown(table)}")
    if corrections:
        mended_too = done.corrected(corrections)
        mended_too.export(directory / "corrected")
        typer.echo(f"\nwith the evidence that {corrections.name} corrects\n\n{mended_too}")
    typer.echo(f"runs, qrels, per-query results and reports: {directory}")
    n_read = done.cells["read"].sum()
    typer.echo(f"comparison {done.name!r} in the store: {n_read} of {done.cells.height} runs were there before")


@verb(in_force, "store", "encoder", "on_error", "language", "seed")
def why(
    chosen: Settings,
    query_id: Annotated[str, typer.Argument(help="The question, as runs and reports name it.")],
    dataset: Path_,
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "best",
    system: Annotated[
        str | None, typer.Option(help="A memory instead: module:name or http://HOST:PORT.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option(help="How many first turns of the pipeline count as found.", min=1, max=MOST)] = 10,
    format: Format = None,
    pool: Pool = None,
) -> None:
    """Follow the evidence of one question through a pipeline: its rank after each stage, and what stands above it.

    Of a memory from outside: what it returned, what of the evidence is not there, and the nearest thing that is.
    """
    from memlab.evaluate import explain
    from memlab.experiments import explain_memory
    from memlab.retrieve import Bench

    (data,) = load_files([dataset], chosen, format=format, pool=pool)
    if system:
        import_systems([system])
        typer.echo(explain_memory(query_id, system, data, encoder=load_encoder(chosen), store=chosen.store))
        return
    scopes = data.questions.filter(data.questions["query_id"] == query_id)["scope"].to_list()
    own = data.take(scopes) if scopes else data
    bench = Bench.of(own, encoder=load_encoder(chosen), store=chosen.store, header=chosen.header)
    typer.echo(str(explain(query_id, pipeline, bench, own, k=k)))


@verb(in_force, "encoder")
def knowledge(
    chosen: Settings,
    folder: Annotated[Path, typer.Argument(help="Chats with gold facts, such as data/facts/dev.", show_default=False)],
    service: Annotated[
        str | None, typer.Option(help="recorded, extractive, or one of [llm.services]; the setting index.service.")
    ] = None,
    facts: Annotated[
        Path | None, typer.Option(help="Facts as they were stated, such as data/facts/frozen.jsonl: only resolved.")
    ] = None,
    errors: Annotated[int, typer.Option(help="Of each measure, how many errors are printed.", min=0, max=MOST)] = 20,
) -> None:
    """Measure what the index knows of chats with gold facts: active and as of dates, endings, false positives."""
    from memlab.evaluate.knowledge import measure_folder, measure_frozen, written

    if facts is not None:
        outcomes = measure_frozen(folder, facts, encoder=load_encoder(chosen))
    else:
        made = service or chosen.index.service
        asked = None if made == "extractive" else made
        outcomes = measure_folder(folder, settings=chosen.index, service=asked, encoder=load_encoder(chosen))
    typer.echo(written(outcomes, errors=errors))


@verb(in_force, "store", "encoder", "on_error", "language", "seed")
def train(
    chosen: Settings,
    dataset: Annotated[list[Path], typer.Argument(help="Files whose questions name evidence.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The file of the model.")] = Path("results/model.safetensors"),
    format: Format = None,
    pool: Pool = None,
) -> None:
    """Train the learned reranker on all conversations of the files, for use as `learned(model='FILE')`."""
    from memlab.rerank import held_out_scores, training_lists
    from memlab.rerank import train as fit
    from memlab.retrieve import Bench
    from memlab.store import MemoryStore

    model, memory = load_encoder(chosen), MemoryStore.open(chosen.store)
    lists, about = [], []
    for data in load_files(dataset, chosen, format=format, pool=pool):
        bench = Bench.of(data, encoder=model, store=memory, header=chosen.header)
        lists += training_lists(bench, data)
        about.append({"name": data.name, "fingerprint": data.fingerprint()})
        typer.echo(data.describe())
    made = fit(lists, seed=chosen.seed)
    made = replace(made, about={**made.about, "data": about, "scores": held_out_scores(lists, seed=chosen.seed)})
    made.save(out)
    typer.echo(
        f"learned from {made.about['questions']:,} questions of {len(made.about['scopes']):,} conversations: {out}"
    )
    for name, value in made.about["scores"].items():
        typer.echo(f"  {name} {value:.3f}  (each conversation by a model that did not learn from it)")


@verb(in_force, "store", "encoder", "language", "seed")
def notebooks(
    chosen: Settings,
    dataset: Path_ = Path("data/sample/sample.jsonl"),
    out: Out = None,
    source: Annotated[Path, typer.Option(help="Where the notebooks are.")] = Path("notebooks"),
    only: Annotated[str, typer.Option(help="Run only notebooks whose name holds this; '0[1-4]' works too.")] = "",
    jobs: Annotated[int, typer.Option(help="How many run at a time, each of up to 2 GB.", min=1)] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of a notebook, as n_scopes=None or tokens=[500]; may be repeated."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Run also those whose cells, data, settings and code have not changed.")
    ] = False,
    pool: Pool = None,
) -> None:
    """Run the notebooks on a dataset; the executed ones are kept, figures are exported."""
    from memlab.datasets.fetch import place
    from memlab.figures import gallery
    from memlab.notebooks import findings, results_page, run_notebooks

    parameters = {
        "dataset": str(place(dataset).resolve()),
        "pool": pool,
        "language": chosen.language,
        "seed": chosen.seed,
        "encoder": chosen.encoder,
        "store": chosen.store if "://" in chosen.store else str(Path(chosen.store).resolve()),
        "figures": str(Path(chosen.figures).resolve()),
    }
    directory = out or Path(chosen.results) / "notebooks"
    values = assignments(set_ or [])
    done = run_notebooks(source, directory, parameters, only=only, chosen=values, jobs=jobs, again=again)
    for path, seconds in done:
        typer.echo(f"{path}  {seconds:.0f} s" if seconds else f"{path}  kept, nothing changed; --again runs it anyway")
    if Path(chosen.figures).is_dir():
        gallery(chosen.figures, notebooks=source)
    page = results_page(chosen.results, chosen.figures, directory)
    for said in findings(next(iter(sorted(directory.glob("[0-9]*.ipynb")))))[:1]:
        typer.echo(f"found: {said}")
    typer.echo(f"open:  {page}")


@app.command()
def figures(
    directory: Annotated[
        Path | None, typer.Argument(help="Where figures were exported to.", show_default=False)
    ] = None,
    remake: Annotated[
        str | None, typer.Option(help="Make this figure again first, from its sidecar.", metavar="NAME")
    ] = None,
    source: Annotated[Path, typer.Option(help="Where the notebooks are.")] = Path("notebooks"),
) -> None:
    """Make the gallery of all exported figures, by notebook."""
    from memlab.figures import gallery

    chosen, _ = settings({"figures": str(directory) if directory else None})
    if remake:
        from memlab.notebooks import remake as make_again

        changed, edited = make_again(remake, chosen.figures, source=source)
        typer.echo(f"{remake}: {', '.join(changed) + ' changed' if changed else 'every file came out the same'}")
        if edited:
            typer.echo("its notebook has changed since the figure was made")
    typer.echo(gallery(chosen.figures, notebooks=source))
