// What differs between two views: domains, regimes or runs.
const KINDS = { appeared: "appeared", vanished: "vanished", turned: "changed direction", stronger: "stronger", weaker: "weaker" };
const CLEARLY = 1.5; // a score that changed by this factor is worth a line

function changesBetween(from, to) {
  const found = [];
  for (const edge of to.edges) {
    const before = from.byKey.get(edge.key);
    if (!before) found.push({ kind: "appeared", edge, before: scoreOf(from, edge.source, edge.target, edge.lag), after: edge.score });
    else if (before.way !== edge.way && before.way !== "both" && edge.way !== "both") found.push({ kind: "turned", edge, before: before.score, after: edge.score });
    else if (edge.score > CLEARLY * before.score) found.push({ kind: "stronger", edge, before: before.score, after: edge.score });
    else if (edge.score * CLEARLY < before.score) found.push({ kind: "weaker", edge, before: before.score, after: edge.score });
  }
  for (const edge of from.edges) {
    if (!to.byKey.has(edge.key)) found.push({ kind: "vanished", edge, before: edge.score, after: scoreOf(to, edge.source, edge.target, edge.lag) });
  }
  const order = Object.keys(KINDS);
  return found.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.edge.score - a.edge.score);
}

function drawChanges() {
  if (views.length < 2) return;
  const from = views[state.from], to = views[state.to], body = $("change-body");
  const found = changesBetween(from, to);
  const kept = to.edges.filter((edge) => from.byKey.has(edge.key)).length;
  const counts = make("p", { id: "change-counts" }, `${count(kept, "edge")} in both; `,
    Object.keys(KINDS).map((kind) => `${found.filter((change) => change.kind === kind).length} ${KINDS[kind]}`).join(", "), ".");
  body.replaceChildren(counts, ...lossesBeside(from, to));
  if (!found.length) return body.append(make("p", { className: "quiet" }, "The two graphs agree, and no score differs by more than half."));
  const table = make("table", { id: "change-table" }, make("thead", {}, make("tr", {}, ...["change", "source", "target", "lag", `score in ${from.name}`, `score in ${to.name}`].map(
    (title, i) => make("th", { scope: "col", className: i < 3 ? "text" : "" }, title)))));
  const rows = make("tbody");
  for (const { kind, edge, before, after } of found.slice(0, MOST_ROWS)) {
    const view = kind === "vanished" ? state.from : state.to;
    const open = () => update({ view, edge: edge.key, variable: "" });
    rows.append(make("tr", { tabIndex: 0, onclick: open, onkeydown: (event) => event.key === "Enter" && open(), "data-change": kind },
      make("td", { className: "text change-kind" }, KINDS[kind]), make("td", { className: "text" }, named(edge.source)), make("td", { className: "text" }, named(edge.target)),
      make("td", {}, String(edge.lag)), make("td", {}, format(before)), make("td", {}, format(after))));
  }
  table.append(rows);
  body.append(make("div", { className: "rows" }, table));
}

function lossesBeside(from, to) {
  if (!data.compare || (from.kind === "run") === (to.kind === "run")) return [];
  const better = data.compare.better;
  return [make("p", { className: "quiet" }, `Held-out error: this run forecasts ${count(better.here, "variable")} better, the other run ${better.there}; ${better.same} are within 1 %.`)];
}

function setUpChanges() {
  if (views.length < 2) return;
  $("changes").hidden = false;
  for (const [id, key] of [["change-from", "from"], ["change-to", "to"]]) {
    $(id).replaceChildren(...views.map((view, i) => make("option", { value: i }, view.name)));
    $(id).addEventListener("change", () => update({ [key]: Number($(id).value) }));
  }
}
