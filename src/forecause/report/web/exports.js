// The shown edges in other programs' formats, as the library itself writes them.
function columnsOf(edges) {
  const own = new Set(["chosen", "place", "key", "way", "sure"]);
  const found = new Set(["source", "target", "lag", "score"]);
  for (const edge of edges) for (const key of Object.keys(edge)) if (!own.has(key)) found.add(key);
  return [...found];
}

function asCsv(edges) {
  const columns = columnsOf(edges);
  const cell = (value) => {
    if (value == null) return "";
    const text = value === true ? "True" : value === false ? "False" : String(value);
    return text === "" || text !== text.trim() || /[,"\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...edges.map((edge) => columns.map((c) => edge[c]))].map((row) => row.map(cell).join(",") + "\n").join("");
}

function asJson(edges) {
  const columns = columnsOf(edges), view = currentView();
  const rows = edges.map((edge) => Object.fromEntries(columns.map((c) => [c, edge[c] ?? null])));
  return JSON.stringify({ format: "forecause.graph/1", variables: view.variables, max_lag: view.maxLag, edges: rows }, null, 1) + "\n";
}

// Characters XML cannot hold become _xHHHH_, as in the library.
function xml(text) {
  const code = (c) => `_x${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`;
  return String(text)
    .replace(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]|_(?=x[0-9A-F]{4})/g, code)
    .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
    .replaceAll("\t", "&#9;").replaceAll("\n", "&#10;");
}
function asGraphml(edges) {
  const columns = columnsOf(edges).slice(2), view = currentView();
  const type = (column) => {
    const cells = edges.map((edge) => edge[column]).filter((value) => value != null);
    if (column === "lag" || column === "sign") return "long";
    if (cells.every((value) => typeof value === "boolean") && cells.length) return "boolean";
    return cells.every((value) => typeof value === "number") ? "double" : "string";
  };
  const keys = columns.map((c, i) => `  <key id="d${i}" for="edge" attr.name="${xml(c)}" attr.type="${type(c)}" />\n`).join("");
  const nodes = view.variables.map((name) => `    <node id="${xml(name)}" />\n`).join("");
  const arrows = edges.map((edge) => {
    const cells = columns.map((c, i) => (edge[c] == null ? "" : `      <data key="d${i}">${xml(edge[c])}</data>\n`)).join("");
    return `    <edge source="${xml(edge.source)}" target="${xml(edge.target)}" id="${edge.lag}">\n${cells}    </edge>\n`;
  }).join("");
  return `<?xml version='1.0' encoding='utf-8'?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n${keys}`
    + `  <key id="g0" for="graph" attr.name="max_lag" attr.type="long" />\n  <graph edgedefault="directed">\n${nodes}${arrows}`
    + `    <data key="g0">${view.maxLag}</data>\n  </graph>\n</graphml>\n`;
}

function asDot(edges) {
  const quoted = (text) => '"' + text.replaceAll("&", "&amp;").replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")
    .replace(/[\u0000-\u001f\u007f]/g, (c) => `&#${c.charCodeAt(0)};`) + '"';
  const reserved = new Set(["node", "edge", "graph", "digraph", "subgraph", "strict"]);
  const key = (text) => (/^[A-Za-z_][A-Za-z_0-9]*$/.test(text) && !reserved.has(text.toLowerCase()) ? text : quoted(text));
  const view = currentView(), columns = columnsOf(edges).slice(2);
  const node = new Map(view.variables.map((name, i) => [name, `n${i}`]));
  const whole = new Set(["lag", "sign"]);
  const value = (column, cell) => (typeof cell === "string" ? quoted(cell) : typeof cell === "number" && !whole.has(column) ? plain(cell) : String(cell));
  const lines = [`max_lag=${view.maxLag};`, ...view.variables.map((name) => `${node.get(name)} [label=${quoted(name)}];`)];
  for (const edge of edges) {
    const cells = columns.filter((c) => edge[c] != null).map((c) => `${key(c)}=${value(c, edge[c])}`);
    lines.push(`${node.get(edge.source)} -> ${node.get(edge.target)} [label="${edge.lag}", ${cells.join(", ")}];`);
  }
  return `digraph forecause {\n${lines.map((line) => `  ${line}\n`).join("")}}\n`;
}
// DOT knows no exponents: 1.5e-7 is written as 0.00000015.
function plain(number) {
  const [digits, power] = String(number).split("e");
  if (power === undefined) return digits.includes(".") ? digits : digits + ".0";
  const sign = digits.startsWith("-") ? "-" : "";
  const [whole, part = ""] = digits.replace("-", "").split(".");
  const all = whole + part, point = whole.length + Number(power);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${all}`;
  return point >= all.length ? `${sign}${all}${"0".repeat(point - all.length)}.0` : `${sign}${all.slice(0, point)}.${all.slice(point)}`;
}

const FORMATS = { CSV: asCsv, JSON: asJson, GraphML: asGraphml, DOT: asDot };

async function copy(name) {
  const edges = tableRows();
  const text = FORMATS[name](edges);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${count(edges.length, "edge")} copied as ${name}`);
}
