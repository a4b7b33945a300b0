// Controls, tabs and search; everything that sets the page in motion.
const PICTURES = { summary: ["Summary", summaryPicture], time: ["Time graph", timePicture], heat: ["Heatmap", heatPicture] };

function tabs(holder, entries, key) {
  holder.replaceChildren(...entries.map(([value, label]) => make("button", {
    type: "button", role: "tab", "data-value": value, "aria-controls": "canvas", onclick: () => update({ [key]: value }),
  }, named(label))));
  holder.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const value = step(entries.map(([v]) => v), state[key], by);
    update({ [key]: value });
    requestAnimationFrame(() => holder.querySelector('[aria-selected="true"]')?.focus());
  });
}
function markTabs(holder, value) {
  for (const tab of holder.children) {
    const on = tab.dataset.value === String(value);
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
  }
}

function setUpControls() {
  tabs($("shapes"), Object.entries(PICTURES).map(([key, [label]]) => [key, label]), "shape");
  $("views").hidden = views.length < 2;
  if (views.length > 1) tabs($("views"), views.map((view, i) => [i, view.name]), "view");
  $("floor").addEventListener("input", () => update({ floor: Number($("floor").value) }));
  $("sure").addEventListener("input", () => update({ sure: Number($("sure").value) }));
  $("sure-control").hidden = !views.some((view) => view.edges.some((edge) => edge.sure !== null));
  $("selfs").addEventListener("click", () => update({ selfs: !state.selfs }));
  $("extra").addEventListener("click", () => update({ extra: !state.extra }));
  $("extra").hidden = !views.some((view) => view.scores);
  $("filter").addEventListener("input", () => update({ filter: $("filter").value }));
  $("zoom-in").addEventListener("click", () => zoomBy(1.3));
  $("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  $("zoom-fit").addEventListener("click", showAll);
  $("copy").append(...Object.keys(FORMATS).map((name) => make("button", { className: "chip", type: "button", "data-format": name, onclick: () => copy(name) }, name)));
  const longest = Math.max(...views.map((view) => view.maxLag));
  const zero = views.some((view) => view.edges.some((edge) => edge.lag === 0)) ? [0] : [];
  const lags = [...zero, ...Array.from({ length: longest }, (_, i) => i + 1)];
  $("lags").append(...lags.map((lag) => make("button", { className: "chip", type: "button", "data-lag": lag, onclick: () => toggleLag(lag) }, String(lag))));
}

// A first click on a delay shows it alone; further ones add and take away; none means all.
function toggleLag(lag) {
  const lags = new Set(state.lags ? state.lags.split(",").map(Number) : []);
  if (lags.has(lag)) lags.delete(lag);
  else lags.add(lag);
  update({ lags: [...lags].sort((a, b) => a - b).join(",") });
}

function drawControls() {
  markTabs($("shapes"), state.shape);
  markTabs($("views"), state.view);
  $("floor").value = state.floor;
  $("sure").value = state.sure;
  const threshold = thresholdAt(state.floor);
  $("floor-value").textContent = threshold === -Infinity ? "any" : format(threshold);
  $("sure-value").textContent = state.sure ? `${state.sure} %` : "any";
  $("selfs").setAttribute("aria-pressed", String(state.selfs));
  $("extra").setAttribute("aria-pressed", String(state.extra));
  const lags = state.lags ? state.lags.split(",") : [];
  for (const chip of $("lags").children) chip.setAttribute("aria-pressed", String(!lags.length || lags.includes(chip.dataset.lag)));
  const shown = shownEdges(), own = ownPast(currentView()), all = currentView().edges.length - (state.selfs ? 0 : own);
  $("selfs").textContent = `links to itself (${own})`;
  $("edge-count").textContent = shown.length;
  $("edge-total").textContent = state.extra ? `links and candidates (${all} chosen)` : `of ${all} links`;
  if ($("filter").value !== state.filter) $("filter").value = state.filter;
  if (views.length > 1) {
    $("change-from").value = state.from;
    $("change-to").value = state.to;
  }
  drawFocus();
  canvas.setAttribute("aria-label", `${PICTURES[state.shape][0]} of ${currentView().name}: ${shown.length} links among ${currentView().variables.length} variables. The edge table below lists them.`);
}

function drawFocus() {
  $("focus-control").hidden = !state.focus;
  if (!state.focus) return;
  const reach = { both: "both", causes: "causes", effects: "effects" };
  $("reach").replaceChildren(
    make("button", { className: "chip", type: "button", id: "unfocus", "aria-pressed": "true", "aria-label": `Stop focusing on ${state.focus}`, onclick: () => update({ focus: "" }) }, named(state.focus), " ×"),
    ...Object.entries(reach).map(([key, label]) => make("button", { className: "chip", type: "button", "data-reach": key, "aria-pressed": String(state.reach === key), onclick: () => update({ reach: key }) }, label)),
  );
}

function drawLegend() {
  const line = (colour) => {
    const mark = make("i", { className: "bar" });
    mark.style.background = colour;
    return mark;
  };
  const entries = state.shape === "heat"
    ? [[line("linear-gradient(90deg, var(--heat-0), var(--heat-1))"), "score"], ["◤", "predicted edge"], ...(data.truth ? [["◥", "true edge"]] : []), ["", "rows: targets · columns: sources"]]
    : [[line("var(--up)"), "raises"], [line("var(--down)"), "lowers"], ...(currentView().edges.some((edge) => edge.way === "both") ? [[line("var(--both)"), "either, by the state"]] : []), ...widthEntries(), ...gradeEntries(), ["1", `delay in ${data.delay_unit}`], ...(shownMixed() ? [["±", "the other way at a further delay"]] : [])];
  $("legend").replaceChildren(...entries.map(([mark, text]) => {
    const glyph = typeof mark === "string" ? make("b", {}, mark) : mark;
    if (mark === "◤") glyph.style.color = "var(--down)";
    if (mark === "◥") glyph.style.color = "var(--truth)";
    return make("span", {}, glyph, text);
  }));
}

// Two widths and what they stand for, and the lines of the grades that occur.
function widthEntries() {
  const scores = currentView().edges.map((edge) => edge.score).filter((score) => score > 0);
  if (!scores.length) return [];
  const top = Math.max(...scores), low = Math.min(...scores);
  const sample = (score) => draw("svg", { class: "sample", viewBox: "0 0 26 10", "aria-hidden": "true" }, draw("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: "currentColor", "stroke-width": widthOf(score, top) }));
  return (low < top ? [low, top] : [top]).map((score) => [sample(score), `score ${format(score)}`]);
}
function gradeEntries() {
  const used = Object.keys(LINES).filter((grade) => currentView().edges.some((edge) => edge.grade === grade));
  return used.map((grade) => [draw("svg", { class: "sample", viewBox: "0 0 26 10", "aria-hidden": "true" }, draw("line", {
    x1: 0, x2: 26, y1: 5, y2: 5, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": LINES[grade][1].join(" "), opacity: LINES[grade][0],
  })), grade]);
}
const shownMixed = () => state.shape === "summary" && arrowsOf(shownEdges()).some((arrow) => arrow.mixed);

function setUpSearch() {
  const input = $("find"), list = $("finds");
  let matches = [], current = 0;
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };
  const show = () => {
    const text = input.value.trim().toLowerCase();
    matches = text ? currentView().variables.filter((name) => name.toLowerCase().includes(text)).slice(0, 30) : [];
    current = 0;
    list.replaceChildren(...matches.map((name, i) => make("li", { role: "option", id: `find-${i}`, dir: "auto", onmousedown: () => pick(name) }, name)));
    if (text && !matches.length) list.append(make("li", { className: "quiet" }, "No variable is called so."));
    list.hidden = !text;
    input.setAttribute("aria-expanded", String(Boolean(text)));
    mark();
  };
  const mark = () => {
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === current && matches.length > 0)));
    if (matches.length) input.setAttribute("aria-activedescendant", `find-${current}`);
    list.children[current]?.scrollIntoView({ block: "nearest" });
  };
  const pick = (name) => {
    input.value = "";
    close();
    update({ focus: name, variable: name, edge: "" });
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && matches[current]) pick(matches[current]);
    else if (event.key === "ArrowDown") current = Math.min(current + 1, matches.length - 1);
    else if (event.key === "ArrowUp") current = Math.max(current - 1, 0);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    mark();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) return;
    event.preventDefault();
    input.focus();
  });
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
  readColours();
  drawStage();
}

function start() {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  setTheme(wish.matches);
  wish.addEventListener("change", () => setTheme(wish.matches));
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((box) => (box.open = true)));
  setUpControls();
  setUpSearch();
  setUpChanges();
  watch(["shape"], () => {
    stage.picture = PICTURES[state.shape][1];
    sizeCanvas();
    showAll();
  });
  watch([...FILTERS, "shape", "filter", "from", "to"], drawControls);
  watch([...FILTERS, "shape"], drawLegend);
  watch([...FILTERS, "shape", "edge", "variable"], drawStage);
  watch(["view", "edge", "variable", "focus"], drawPanel);
  watch(["from", "to"], drawChanges);
  watch(["edge"], markRow);
  let tableTimer = 0;
  watch([...FILTERS, "filter", "sort", "down"], () => {
    clearTimeout(tableTimer);
    tableTimer = setTimeout(drawTable, 140);
  });
  for (const key of Object.keys(START)) changed.add(key);
  readHash();
  redraw();
  drawTable();
  sizeCanvas();
  resize();
  addEventListener("resize", sizeCanvas);
  new ResizeObserver(resize).observe(canvas);
  addEventListener("hashchange", readHash);
  $("panel").addEventListener("keydown", (event) => event.key === "Escape" && select(null));
}

// A handle for tests and the curious: where a thing is drawn, and how long drawing took.
window.forecause = {
  state, data, shownEdges,
  arrows: () => summaryPicture.curves.map(({ arrow, width }) => ({ ...arrow, width })),
  boxes: () => [...boxes.values()],
  panels: () => heatPicture.panels,
  cells: (lag) => heatPicture.cells(currentView(), lag, heatPicture.order(currentView())),
  drawMs: () => stage.drawMs,
  where: (thing) => {
    const box = canvas.getBoundingClientRect(), spot = stage.picture.where(thing);
    return spot && [box.left + spot[0], box.top + spot[1]];
  },
};
start();
