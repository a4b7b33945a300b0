// The edge table: the edges that the filters leave, sorted and searched.
const MOST_ROWS = 500;
const FIRST = ["source", "target", "way", "lag", "change", "change_low", "change_high", "grade", "decided_by", "certainty", "score"];
// Left to edges.csv and to what is copied; confidence only where certainty or a q-value says it.
const HIDDEN = new Set(["sign", "sign_consistency", "mean_rank", "sd_rank"]);
const HEADS = { change: "change per sd", change_low: "from", change_high: "to", q_value: "q-value", lag: "delay" };

// On a phone, source, target, delay and effect alone; see `.more` in the style.
const ALWAYS = new Set(["source", "target", "lag", "change"]);
const TEXTS = new Set(["source", "target", "way", "grade", "decided_by"]);
const cellClass = (column) => [TEXTS.has(column) ? "text" : "", ALWAYS.has(column) ? "" : "more"].join(" ").trim();

function tableRows() {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (edge) => `${edge.source} ${edge.target} ${WORDS[edge.way]} ${edge.lag}`.toLowerCase();
  const rows = shownEdges().filter((edge) => words.every((word) => text(edge).includes(word)));
  const by = state.sort, sign = state.down ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [a[by], b[by]];
    if (x == null || y == null) return (x == null) - (y == null);
    return sign * (typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y) || b.score - a.score;
  });
}

function tableColumns() {
  const edges = currentView().edges, idle = (column) => column === "doubtful" && !edges.some((edge) => edge.doubtful);
  const columns = columnsOf(edges).filter((column) => !HIDDEN.has(column) && !idle(column));
  const first = FIRST.filter((column) => column === "way" || columns.includes(column));
  const said = (column) => column === "confidence" && (columns.includes("certainty") || columns.includes("q_value"));
  return [...first, ...columns.filter((column) => !first.includes(column) && !said(column))];
}

function drawTableHead() {
  const head = make("tr");
  for (const column of tableColumns()) {
    const title = column === "way" ? "" : HEADS[column] || column.replaceAll("_", " ");
    const cell = make("th", { scope: "col", className: cellClass(column), title: data.glossary[column] || "" });
    if (column !== "way") {
      cell.append(make("button", { className: "sortable", type: "button", "data-column": column, onclick: () => sortBy(column) }, title));
      cell.setAttribute("aria-sort", state.sort === column ? (state.down ? "descending" : "ascending") : "none");
    } else cell.append(make("span", { "aria-label": "direction of the effect" }, "direction"));
    head.append(cell);
  }
  $("table").tHead.replaceChildren(head);
}
function sortBy(column) {
  const text = column === "source" || column === "target" || column === "lag" || column === "q_value";
  update(state.sort === column ? { down: !state.down } : { sort: column, down: !text });
}

// Cells of a column get the same number of digits, very small ones an exponent.
function cellText(value, digits) {
  if (typeof value !== "number" || digits === null) return format(value);
  if (value !== 0 && Math.abs(value) < 0.001) return format(value);
  return value.toFixed(digits).replace("-", "−");
}
function digitsOf(column, edges) {
  const cells = edges.map((edge) => edge[column]).filter((value) => typeof value === "number");
  if (cells.every(Number.isInteger)) return null;
  const top = cells.reduce((high, value) => Math.max(high, Math.abs(value)), 0);
  return top >= 1e5 ? null : top >= 1000 ? 0 : top >= 10 ? 1 : 3;
}

function drawTable() {
  drawTableHead();
  const rows = tableRows(), columns = tableColumns();
  const digits = Object.fromEntries(columns.map((column) => [column, digitsOf(column, currentView().edges)]));
  const body = document.createDocumentFragment();
  for (const edge of rows.slice(0, MOST_ROWS)) body.append(tableRow(edge, columns, digits));
  $("table").tBodies[0].replaceChildren(body);
  const more = rows.length > MOST_ROWS ? ` The first ${MOST_ROWS} are listed; copying takes all.` : "";
  $("table-note").textContent = rows.length
    ? `${count(rows.length, "edge")}, as filtered above.${more} Point at a heading for its meaning.`
    : "No edge passes the filters.";
}

function tableRow(edge, columns, digits) {
  const open = () => select({ kind: "edge", key: edge.key });
  const row = make("tr", {
    tabIndex: 0, className: edge.chosen ? "" : "quiet", onclick: open, onkeydown: (event) => event.key === "Enter" && open(), "data-key": edge.key,
    "aria-selected": String(state.edge === edge.key),
  });
  for (const column of columns) {
    if (column === "way") row.append(make("td", { className: `text more ${edge.way}` }, edge.way === "up" ? "▲ raises" : edge.way === "down" ? "▼ lowers" : "◆ moves"));
    else if (column === "source" || column === "target") row.append(make("td", { className: "text", title: edge[column] }, named(edge[column])));
    else if (column === "change" && edge.chosen && currentView().kind === "all" && shapes.has(edge.key)) row.append(make("td", { title: format(edge.change) }, shapes.get(edge.key)));
    else row.append(make("td", { className: cellClass(column), title: edge[column] ?? "" }, column === "q_value" ? small(edge[column]) : cellText(edge[column], digits[column])));
  }
  return row;
}

function markRow() {
  for (const row of $("table").tBodies[0].rows) row.setAttribute("aria-selected", String(row.dataset.key === state.edge));
}
