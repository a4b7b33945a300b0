// The panel beside the graph: an edge or a variable, looked at closely.
const evidence = data.evidence || {};
const place = new Map(data.graph.variables.map((name, i) => [name, i]));
const curves = new Map((evidence.edges || []).map((entry) => {
  const [source, target, lag] = entry.edge;
  return [JSON.stringify([data.graph.variables[source], data.graph.variables[target], lag]), entry];
}));
const WORDS = { up: "raises", down: "lowers", both: "moves" };
const TITLES = {
  change: "change per sd", score: "score", effect: "effect (sd)", share: "share of target", confidence: "confidence", certainty: "certainty", grade: "grade", q_value: "q-value", mean_rank: "mean rank",
  sd_rank: "sd of rank", stability: "stability", sign_consistency: "sign consistency",
};

function drawPanel() {
  const panel = $("panel"), inside = panel.contains(document.activeElement);
  panel.replaceChildren();
  panel.scrollTop = 0;
  if (state.edge) edgePanel(panel, state.edge);
  else if (state.variable) variablePanel(panel, state.variable);
  else emptyPanel(panel);
  if (inside) panel.focus({ preventScroll: true }); // what had the focus is gone
}

function emptyPanel(panel) {
  const links = strongestLinks();
  panel.append(
    make("h2", {}, "The strongest links"),
    links.length ? make("ol", { className: "answers", id: "answers" }, ...links.map(answer)) : make("p", { className: "evidence" }, NOTHING),
    make("p", { className: "hint small after" }, `${links.some((link) => link.amount) ? "In brackets: a 90 % confidence interval of the average effect. " : ""}Choose a link or an arrow for its evidence, a variable for its series and its causes. Double-click a variable, or press F, to see its neighbourhood alone.`),
    ...listed([...unlinked()]),
  );
}
function listed(alone) {
  if (!alone.length) return [];
  const names = alone.flatMap((name, i) => [i ? ", " : "", variableLink(name)]);
  return [make("details", { className: "hint small after", id: "unlinked" }, make("summary", {}, `Not linked to another variable (${alone.length})`), ...names)];
}
const NOTHING = "No variable was found to drive another. Either there is nothing to find at these delays, or the data is too short or too noisy to show it.";
const VERBS = { raises: "up", lowers: "down", moves: "both" };
// The links of all data have sentences from the library; other views tell direction and delay.
function strongestLinks() {
  const view = currentView();
  if (view.kind === "all") return data.links;
  if (view.kind === "domain") return data.domain_links[view.name];
  const between = view.edges.filter((edge) => edge.source !== edge.target);
  return (between.length ? between : view.edges).slice(0, 5).map((edge) => ({
    edge: [edge.source, edge.target, edge.lag], claim: `${edge.source} ${WORDS[edge.way]} ${edge.source === edge.target ? "itself" : edge.target} ${whenText(edge.lag)}`, amount: "", grade: edge.grade, direction: WORDS[edge.way],
  }));
}
function answer(link) {
  const pick = () => select({ kind: "edge", key: JSON.stringify(link.edge) });
  const grade = link.grade ? make("span", { className: `grade ${link.grade}` }, link.grade) : "";
  return make("li", { className: VERBS[link.direction] }, make("button", { className: "link", type: "button", dir: "auto", onclick: pick }, link.claim), " ", grade,
    ...(link.amount ? [make("span", { className: "amount", dir: "auto" }, link.amount[0].toUpperCase() + link.amount.slice(1))] : []));
}

function edgeLink(edge, text = null) {
  const label = text || make("span", {}, named(edge.source), " → ", named(edge.target), `, ${edge.lag}`);
  return make("button", { className: "link", type: "button", onclick: () => select({ kind: "edge", key: edge.key }) }, label);
}
function variableLink(name) {
  return make("button", { className: "link", type: "button", onclick: () => select({ kind: "variable", key: name }) }, named(name));
}
function meter(share) {
  const bar = make("i");
  bar.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return make("span", { className: "meter" }, bar);
}
function closer() {
  return make("button", { className: "close", type: "button", "aria-label": "Close the details", onclick: () => select(null) }, "×");
}
function part(panel, title, ...content) {
  panel.append(make("h4", {}, title), ...content);
}

function edgePanel(panel, key) {
  const [source, target, lag] = JSON.parse(key);
  const view = currentView(), edge = view.byKey.get(key);
  const way = edge?.way || "both";
  panel.append(closer(), make("h3", { id: "panel-title" }, variableLink(source), " ", make("span", { className: way }, edge ? WORDS[way] : "→"), " ", variableLink(target)));
  panel.append(make("p", { className: "quiet small" }, whenText(lag), view.kind === "all" ? "" : ` · ${view.name}`));
  panel.append(make("p", { className: "evidence", id: "panel-sentence", dir: "auto" }, sentenceOf(view, edge)));
  panel.append(statistics(view, edge, key, source, target, lag));
  strengthPart(panel, view, source, target, lag);
  if (view.kind === "run") return panel.append(make("p", { className: "hint small evidence" }, "Curves of the other run are in its own report."));
  const found = curves.get(key);
  if (found) responsePart(panel, found, source, target, lag, way);
  if (found) influencePart(panel, found);
  alignedPart(panel, source, target, lag);
  if (!found && evidence.edges) panel.append(make("p", { className: "hint small evidence" }, "Response and influence are kept for the strongest chosen edges only."));
}

const whenText = (lag) => (lag ? `after ${delayName(lag)}` : "within the same row");
function sentenceOf(view, edge) {
  if (!edge) return "This candidate was not chosen as an edge.";
  if (view.kind === "all") return data.sentences[edge.place];
  return `${edge.source} ${WORDS[edge.way]} ${edge.target} ${whenText(edge.lag)} in “${view.name}”.`;
}

function statistics(view, edge, key, source, target, lag) {
  const list = make("dl", { className: "stats" });
  const add = (title, value, hint = "") => list.append(make("div", { title: hint }, make("dt", {}, title), make("dd", {}, value)));
  const row = edge || { score: scoreOf(view, source, target, lag) };
  for (const [column, title] of Object.entries(TITLES)) {
    if (row[column] == null) continue;
    if (column === "sd_rank" && row.mean_rank != null) continue;
    if (column === "mean_rank" && row.sd_rank != null) add("rank, mean ± sd", `${format(row.mean_rank)} ± ${format(row.sd_rank)}`, data.glossary.mean_rank);
    else if (column === "change" && shapes.has(row.key)) add(title, shapes.get(row.key), data.glossary.change);
    else if (column === "change" && row.change_low != null) add(title, `${format(row.change)} [${format(row.change_low)}, ${format(row.change_high)}]`, data.glossary.change);
    else add(title, column === "q_value" ? small(row[column]) : format(row[column]), data.glossary[column]);
  }
  const found = curves.get(key);
  if (found?.lost != null && view.kind !== "run") add("lost without it", percent(found.lost), "Growth of the held-out squared error when this input is replaced by its mean.");
  if (data.truth && view.kind === "all") add("in the truth", trueKeys.has(key) ? "yes" : "no");
  return list;
}
const percent = (share) => `${share >= 0 ? "+" : "−"}${format(+(100 * Math.abs(share)).toPrecision(3))} %`;

function strengthPart(panel, view, source, target, lag) {
  const lags = view.lags.length ? view.lags : Array.from({ length: view.maxLag }, (_, i) => i + 1);
  const bars = lags.map((at) => {
    const key = JSON.stringify([source, target, at]), edge = view.byKey.get(key);
    const value = edge ? edge.score : scoreOf(view, source, target, at);
    return {
      value, label: at, current: at === lag, colour: edge ? `var(--${edge.way})` : "var(--line)",
      title: `delay ${at}: ${format(value)}${edge ? "" : ", not chosen"}`, pick: () => select({ kind: "edge", key }),
    };
  });
  part(panel, "Strength per delay", barChart({ label: `Score of ${source} for ${target} at every delay`, bars }));
}

function responsePart(panel, found, source, target, lag, way) {
  const chart = lineChart({
    label: `Forecast of ${target} against ${source}`, x: found.response.x, xLabel: clipText(source, lag),
    lines: [{ y: found.response.y, colour: `var(--${way})`, width: 2.2 }], height: 150,
  });
  part(panel, "Response: mean forecast as the source is set", chart, swatches([[`var(--${way})`, `forecast of ${target}`]]));
}
const clipText = (name, lag) => (name.length > 30 ? name.slice(0, 29) + "…" : name) + (lag ? `, ${delayName(lag)} earlier` : "");

function influencePart(panel, found) {
  const [low, high] = extent(found.influence);
  const flat = high - low < 1e-4 * Math.abs(high);
  part(panel, "Influence over time", lineChart({
    label: "Mean size of the forecast's slope in consecutive stretches of the data", zero: true, ticks: evidence.course.ticks, spans: evidence.domains,
    lines: [{ y: found.influence, colour: "var(--accent)", width: 1.6 }],
  }));
  if (flat) panel.append(make("p", { className: "hint small" }, "Constant, since a linear model forecasts this variable."));
}

function alignedPart(panel, source, target, lag) {
  const near = evidence.stretch;
  if (!near || !place.has(source) || !place.has(target)) return;
  const before = data.graph.max_lag;
  const theirs = near.values[place.get(source)], ours = near.values[place.get(target)].slice(before);
  const moved = theirs.slice(before - lag, theirs.length - lag);
  const self = source === target;
  part(panel, "The two series, the source moved by its delay", lineChart({
    label: `${source} moved by ${delayName(lag)} beside ${target}, standardised`, ticks: near.ticks,
    lines: [{ y: standardised(moved), colour: "var(--down)" }, { y: standardised(ours), colour: "var(--up)" }],
  }), swatches([["var(--up)", target], ["var(--down)", `${source}${self ? ", earlier" : ""}, ${lag ? delayName(lag) + " before" : "same row"}`]]));
}
function standardised(values) {
  const known = values.filter((v) => v != null);
  const mean = known.reduce((a, b) => a + b, 0) / (known.length || 1);
  const sd = Math.sqrt(known.reduce((a, b) => a + (b - mean) ** 2, 0) / (known.length || 1)) || 1;
  return values.map((v) => (v == null ? null : (v - mean) / sd));
}

function variablePanel(panel, name) {
  const view = currentView();
  panel.append(closer(), make("h3", { id: "panel-title" }, named(name)));
  const causes = view.edges.filter((edge) => edge.target === name), effects = view.edges.filter((edge) => edge.source === name);
  const focused = state.focus === name;
  panel.append(make("p", { className: "evidence" }, `${count(causes.length, "cause")}, ${count(effects.length, "effect")}. `,
    make("button", { className: "button small", type: "button", id: "focus-here", onclick: () => update({ focus: focused ? "" : name }) }, focused ? "Show all" : "Focus on it")));
  causesPart(panel, causes, view);
  if (view.kind !== "run") seriesParts(panel, name);
  if (effects.length) {
    const list = make("div", { className: "causes" });
    for (const edge of effects) list.append(edgeLink(edge, make("span", {}, named(edge.target), ` ${whenText(edge.lag)}`)), meter(edge.score / effects[0].score), make("span", { className: "number" }, format(edge.score)));
    part(panel, "Its effects, by score", list);
  }
}
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function causesPart(panel, causes, view) {
  if (!causes.length) return;
  const lost = (edge) => (view.kind === "run" ? null : curves.get(edge.key)?.lost ?? null);
  const known = causes.some((edge) => lost(edge) !== null);
  const worth = (edge) => (known ? Math.max(lost(edge) ?? 0, 0) : edge.score);
  const ordered = [...causes].sort((a, b) => worth(b) - worth(a)), top = worth(ordered[0]) || 1;
  const list = make("div", { className: "causes", id: "causes" });
  for (const edge of ordered) {
    list.append(edgeLink(edge, make("span", {}, named(edge.source), edge.lag ? ` ${delayName(edge.lag)} before` : " in the same row")), meter(worth(edge) / top),
      make("span", { className: "number" }, known ? (lost(edge) === null ? "–" : percent(lost(edge))) : format(edge.score)));
  }
  part(panel, known ? "Lost without each cause (held-out error)" : "Its causes, by score", list);
}

function seriesParts(panel, name) {
  const at = place.get(name);
  if (evidence.stretch) {
    const near = evidence.stretch, ours = near.values[at].slice(data.graph.max_lag), forecast = near.forecast[at];
    const reach = 1.64 * near.error_sd[at];
    part(panel, "Forecast on held-out rows, 90 % interval", lineChart({
      label: `Forecast of ${name} with an interval beside what happened`, ticks: near.ticks, height: 150,
      band: { low: forecast.map((v) => v - reach), high: forecast.map((v) => v + reach), colour: "var(--accent)" },
      lines: [{ y: ours, colour: "var(--quiet)", width: 1.1 }, { y: forecast, colour: "var(--accent)", width: 1.6 }],
    }), swatches([["var(--accent)", "forecast"], ["var(--quiet)", "what happened"]]));
  }
  if (evidence.course) {
    part(panel, "The whole series", lineChart({
      label: `All values of ${name}`, ticks: evidence.course.ticks, spans: evidence.domains, cuts: evidence.course.breaks,
      lines: [{ y: evidence.course.values[at], colour: "var(--quiet)", width: 0.9 }],
    }));
    timeParts(panel, name, at);
  }
}

// What time alone explains of a variable, and what the graph was found in.
function timeParts(panel, name, at) {
  const whole = evidence.course;
  if (!whole.explained) return;
  for (const [title, key, colour] of [["What time alone explains", "explained", "var(--accent)"], ["What is left: the graph is found in this", "left", "var(--quiet)"]]) {
    part(panel, title, lineChart({
      label: `${title}, of ${name}`, ticks: whole.ticks, cuts: whole.breaks, height: 96, lines: [{ y: whole[key][at], colour, width: 0.9 }],
    }));
  }
}
