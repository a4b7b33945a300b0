// Small charts as SVG: lines with a band, and bars.
const SVG = "http://www.w3.org/2000/svg";
function draw(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function niceTicks(low, high, count = 4) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}
const extent = (values) => values.reduce(([low, high], v) => (v == null ? [low, high] : [Math.min(low, v), Math.max(high, v)]), [Infinity, -Infinity]);

// lines: [{y, colour, width, dash}], x: numbers (default: even steps), ticks: [[share, label]] or from x.
function lineChart({ label, lines, x = null, ticks = null, band = null, spans = [], cuts = [], zero = false, height = 128, xLabel = "" }) {
  const width = 360, left = 40, right = 8, top = 8, bottom = xLabel ? 34 : 20;
  const all = lines.flatMap((line) => line.y).concat(band ? [...band.low, ...band.high] : []);
  let [low, high] = extent(zero ? all.concat(0) : all);
  if (!Number.isFinite(low)) return make("p", { className: "hint small" }, "Nothing to draw here.");
  if (high - low < 1e-12) [low, high] = [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5];
  const count = Math.max(...lines.map((line) => line.y.length));
  const [xLow, xHigh] = x ? extent(x) : [0, count - 1];
  const px = (i) => left + ((x ? x[i] : i) - xLow) / (xHigh - xLow || 1) * (width - left - right);
  const py = (v) => top + (1 - (v - low) / (high - low)) * (height - top - bottom);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  spans.forEach(([name, from, to], i) => {
    if (i % 2 === 0) return;
    svg.append(draw("rect", { x: left + from * (width - left - right), y: top, width: (to - from) * (width - left - right), height: height - top - bottom, fill: "var(--accent-soft)" }, draw("title", {}, name)));
  });
  for (const cut of cuts) svg.append(draw("line", { class: "axis", x1: left + cut * (width - left - right), x2: left + cut * (width - left - right), y1: top, y2: height - bottom, "stroke-dasharray": "2 3" }));
  for (const tick of niceTicks(low, high, 4)) {
    svg.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: py(tick), y2: py(tick) }));
    svg.append(draw("text", { x: left - 5, y: py(tick) + 3.5, "text-anchor": "end" }, format(tick)));
  }
  const marks = ticks || niceTicks(xLow, xHigh, 5).map((v) => [(v - xLow) / (xHigh - xLow || 1), format(v)]);
  marks.forEach(([share, text], i) => {
    const anchor = share < 0.04 ? "start" : share > 0.96 ? "end" : "middle";
    if (ticks && ticks.some(([, t]) => t.length > 9) && i % 2) return;
    svg.append(draw("text", { x: left + share * (width - left - right), y: height - bottom + 14, "text-anchor": anchor }, text));
  });
  if (xLabel) svg.append(draw("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, xLabel));
  if (band) {
    const up = band.high.map((v, i) => `${px(i).toFixed(1)},${py(v).toFixed(1)}`);
    const down = band.low.map((v, i) => `${px(i).toFixed(1)},${py(v).toFixed(1)}`).reverse();
    svg.append(draw("polygon", { points: [...up, ...down].join(" "), fill: band.colour, opacity: 0.18 }));
  }
  for (const line of lines) svg.append(draw("path", { d: pathOf(line.y, px, py), fill: "none", stroke: line.colour, "stroke-width": line.width || 1.4, "stroke-dasharray": line.dash || "", "stroke-linejoin": "round", opacity: line.opacity || 1 }));
  return svg;
}
function pathOf(values, px, py) {
  let text = "", open = false;
  values.forEach((value, i) => {
    if (value == null) open = false;
    else {
      text += `${open ? "L" : "M"}${px(i).toFixed(1)} ${py(value).toFixed(1)}`;
      open = true;
    }
  });
  return text;
}

// bars: [{value, label, colour, title, pick, current}]
function barChart({ label, bars, height = 108 }) {
  const width = 360, left = 40, bottom = 20, top = 8;
  const high = Math.max(...bars.map((bar) => bar.value || 0), 1e-300);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  const py = (v) => top + (1 - v / high) * (height - top - bottom);
  for (const tick of niceTicks(0, high, 3)) {
    svg.append(draw("line", { class: "axis", x1: left, x2: width - 8, y1: py(tick), y2: py(tick) }));
    svg.append(draw("text", { x: left - 5, y: py(tick) + 3.5, "text-anchor": "end" }, format(tick)));
  }
  const step = (width - left - 8) / bars.length, thick = Math.min(step * 0.64, 44);
  bars.forEach((bar, i) => {
    const x = left + (i + 0.5) * step, y = py(Math.max(bar.value || 0, 0));
    const box = draw("rect", {
      class: "bar", x: x - thick / 2, y: Math.min(y, height - bottom - 1.5), width: thick, height: Math.max(height - bottom - y, 1.5), rx: 2,
      fill: bar.colour, stroke: bar.current ? "var(--ink)" : "none", "stroke-width": 1.5,
      tabindex: 0, role: "button", "aria-label": bar.title,
    }, draw("title", {}, bar.title));
    box.addEventListener("click", bar.pick);
    box.addEventListener("keydown", (event) => event.key === "Enter" && bar.pick());
    svg.append(box);
    if (bars.length <= 16 || i % Math.ceil(bars.length / 12) === 0) svg.append(draw("text", { x, y: height - 5, "text-anchor": "middle" }, bar.label));
  });
  return svg;
}

function swatches(entries) {
  return make("div", { className: "swatches" }, ...entries.map(([colour, text]) => {
    const mark = make("i");
    mark.style.background = colour;
    return make("span", {}, mark, named(text));
  }));
}
