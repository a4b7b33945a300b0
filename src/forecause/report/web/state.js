// The data of the page, the views on it, what the user chose, and the hash that remembers it.
const data = JSON.parse(document.getElementById("forecause-report").textContent);
const names = data.layout.names;
const $ = (id) => document.getElementById(id);
const MOST_CANDIDATES = 1000;

// Text from the data only ever becomes text: children are nodes or strings, never markup.
function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && key !== "list" && key !== "style") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}
const named = (name) => make("bdi", {}, name);

function edgeKey(edge) {
  return JSON.stringify([edge.source, edge.target, edge.lag]);
}

function directionOf(edge) {
  if (edge.change_low != null && edge.change_high != null) return edge.change_low > 0 ? "up" : edge.change_high < 0 ? "down" : "both";
  const sign = edge.sign || Math.sign(edge.effect || 0);
  if (!sign || (edge.sign_consistency ?? 1) < 0.5) return "both";
  return sign > 0 ? "up" : "down";
}

// How edges act that do not push on average, by key.
const shapes = new Map(data.shapes.map(([edge, shape]) => [JSON.stringify(edge), shape]));

function confidenceOf(edge) {
  return edge.certainty ?? edge.confidence ?? (edge.q_value == null ? null : 1 - edge.q_value);
}

// One graph of the page: all data, a domain or regime, or another run.
function makeView(name, kind, content, frame) {
  const edges = content.edges.map((edge, place) => ({
    ...edge, chosen: true, place, key: edgeKey(edge), way: directionOf(edge), sure: confidenceOf(edge),
  }));
  return {
    name, kind, edges, scores: content.scores || null, lags: content.score_lags || [],
    variables: frame.variables, maxLag: frame.max_lag, candidates: null,
    byKey: new Map(edges.map((edge) => [edge.key, edge])),
  };
}

const views = [makeView("All data", "all", data.graph, data.graph)];
for (const [name, part] of Object.entries(data.graph.domains || {})) {
  views.push(makeView(name, "domain", part, data.graph));
}
if (data.compare) views.push(makeView("Other run", "run", data.compare.graph, data.compare.graph));
if (data.compare) views[0].name = Object.keys(data.graph.domains || {}).length ? "This run, all data" : "This run";

// What was not chosen, strongest first; made when first asked for.
function candidatesOf(view) {
  if (view.candidates) return view.candidates;
  const found = [];
  (view.scores || []).forEach((row, target) => row.forEach((cells, source) => cells.forEach((score, k) => {
    const edge = { source: view.variables[source], target: view.variables[target], lag: view.lags[k], score };
    edge.key = edgeKey(edge);
    if (score == null || view.byKey.has(edge.key)) return;
    const sign = view.kind === "all" ? data.signs[(target * view.variables.length + source) * view.lags.length + k] : "0";
    found.push({ ...edge, chosen: false, way: sign === "+" ? "up" : sign === "-" ? "down" : "both", sure: null });
  })));
  found.sort((a, b) => b.score - a.score);
  view.candidates = found.slice(0, MOST_CANDIDATES);
  return view.candidates;
}

// A variable's own past is no news: its links are shown when asked for, or where there are no others.
const START = {
  view: 0, shape: "summary", floor: 0, sure: 0, lags: "", selfs: !views.some((view) => view.edges.some((edge) => edge.source !== edge.target)), extra: false, focus: "", reach: "both",
  edge: "", variable: "", filter: "", sort: "score", down: true, from: 0, to: Math.min(1, views.length - 1),
};
const state = { ...START };
const watchers = [];
let waiting = false;
let hashTimer = 0;

function watch(keys, draw) {
  watchers.push({ keys: new Set(keys), draw });
}

const changed = new Set();
function update(patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (state[key] !== value) {
      state[key] = value;
      changed.add(key);
    }
  }
  if (changed.size && !waiting) {
    waiting = true;
    requestAnimationFrame(redraw);
  }
}

function redraw() {
  waiting = false;
  const keys = [...changed];
  changed.clear();
  shownCache = null;
  for (const watcher of watchers) {
    if (keys.some((key) => watcher.keys.has(key))) watcher.draw();
  }
  clearTimeout(hashTimer);
  hashTimer = setTimeout(writeHash, 120);
}

function writeHash() {
  const hash = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== START[key]) hash.set(key, value === true ? "1" : value === false ? "0" : value);
  }
  const text = hash.toString();
  if (location.protocol === "about:") return; // a frame in a notebook has no address to keep it in
  if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

// A hash that is no state, such as #edges, is a place on the page.
function readHash() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return;
  const hash = new URLSearchParams(text);
  const next = {};
  for (const [key, value] of Object.entries(START)) {
    const given = hash.get(key);
    if (given === null) next[key] = value;
    else if (typeof value === "number") next[key] = Number.isFinite(+given) ? +given : value;
    else if (typeof value === "boolean") next[key] = given === "1";
    else next[key] = given;
  }
  for (const [key, sound] of Object.entries(SOUND)) if (!sound(next[key])) next[key] = START[key];
  update(next);
}
// A hash may come from another page or be mistyped: what makes no sense falls back to the start.
const known = (name) => name === "" || names.includes(name);
const SOUND = {
  view: (i) => i in views, from: (i) => i in views, to: (i) => i in views,
  shape: (name) => ["summary", "time", "heat"].includes(name), reach: (name) => ["both", "causes", "effects"].includes(name),
  floor: (n) => n >= 0 && n <= 1000, sure: (n) => n >= 0 && n <= 100, lags: (text) => /^(\d+(,\d+)*)?$/.test(text),
  focus: known, variable: known, edge: soundEdge,
};
function soundEdge(key) {
  if (key === "") return true;
  try {
    const [source, target, lag] = JSON.parse(key);
    return names.includes(source) && names.includes(target) && Number.isInteger(lag) && lag >= 0;
  } catch {
    return false;
  }
}

const currentView = () => views[state.view];
const ownPast = (view) => view.edges.filter((edge) => edge.source === edge.target).length;
const pool = () => (state.extra ? [...currentView().edges, ...candidatesOf(currentView())] : currentView().edges);

// The threshold runs over the scores on a logarithmic scale; 0 keeps all.
function scoreRange(edges) {
  let low = Infinity, high = 0;
  for (const { score } of edges) {
    if (score > 0) {
      low = Math.min(low, score);
      high = Math.max(high, score);
    }
  }
  return high > 0 ? [low, high] : [1, 1];
}
function thresholdAt(position) {
  if (position <= 0) return -Infinity;
  const [low, high] = scoreRange(pool());
  return low * (high / low) ** (position / 1000) * (1 - 1e-9);
}

let shownCache = null;
function shownEdges() {
  if (shownCache) return shownCache;
  const threshold = thresholdAt(state.floor);
  const lags = state.lags ? new Set(state.lags.split(",").map(Number)) : null;
  shownCache = pool().filter((edge) =>
    edge.score >= threshold
    && (state.sure === 0 || edge.sure === null || edge.sure * 100 >= state.sure)
    && (!lags || lags.has(edge.lag))
    && (state.selfs || edge.source !== edge.target)
    && inFocus(edge));
  return shownCache;
}
function inFocus(edge) {
  if (!state.focus) return true;
  return (state.reach !== "effects" && edge.target === state.focus) || (state.reach !== "causes" && edge.source === state.focus);
}

const FILTERS = ["view", "floor", "sure", "lags", "selfs", "extra", "focus", "reach"];

function format(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0 || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5) return value.toExponential(1).replace("e", "e").replace("-", "−");
  return String(+value.toPrecision(3)).replace("-", "−");
}
const small = (value) => (value != null && value < 1e-4 ? "< 0.0001" : format(value));
const delayName = (lag) => data.delays[lag] || `${lag} rows`;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let colours = {};
function readColours() {
  for (const name of ["ink", "quiet", "line", "surface", "raised", "accent", "accent-soft", "up", "down", "both", "truth", "heat-0", "heat-1"]) {
    colours[name] = style("--" + name);
  }
}
function toast(text) {
  $("toast").textContent = text;
  $("toast").classList.add("on");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => $("toast").classList.remove("on"), 2200);
}
