// The heatmap: target x source for every delay; corners mark predicted and true edges. Many variables
// share one matrix with the strongest delay of each pair, linked ones side by side.
const MATRIX_FROM = 25;
const ALL = "all";
const trueKeys = new Set((data.truth?.edges || []).map(edgeKey));

const heatPicture = {
  panels: [], // {lag, x, y, size}, as drawn
  images: new Map(),

  lags() {
    const view = currentView();
    const chosen = state.lags ? state.lags.split(",").map(Number) : null;
    const zero = view.edges.some((edge) => edge.lag === 0) ? [0] : [];
    if (view.variables.length > MATRIX_FROM && !chosen) return [ALL];
    const all = [...zero, ...(view.lags.length ? view.lags : Array.from({ length: view.maxLag }, (_, i) => i + 1))];
    return [...new Set(all)].filter((lag) => !chosen || chosen.includes(lag));
  },

  // The grid of panels that makes the cells largest.
  arrange(count) {
    const side = this.labelRoom(), above = narrow() ? 44 : 0; // the zoom buttons
    const room = { w: stage.width - side - 60, h: stage.height - 145 - above };
    let best = { size: 0, columns: 1, lines: 1 };
    for (let columns = 1; columns <= count; columns++) {
      const lines = Math.ceil(count / columns);
      const size = Math.min((room.w - (columns - 1) * 26) / columns, (room.h - (lines - 1) * 44) / lines);
      if (size > best.size) best = { size, columns, lines };
    }
    const spare = room.h - best.lines * best.size - (best.lines - 1) * 44;
    const across = room.w - best.columns * best.size - (best.columns - 1) * 26;
    return { ...best, left: side + across / 2, top: 40 + above + Math.max(0, spare / 2 - 14) };
  },
  labelRoom() {
    pen.font = `11px ${FONT}`;
    return 20 + Math.min(90, Math.max(...currentView().variables.map((name) => pen.measureText(name).width)));
  },

  // The variables in the order of rows and columns; of a pair, its score at a delay or the highest.
  order(view) {
    return view.variables.length > MATRIX_FROM ? data.layout.order.map((i) => names[i]) : view.variables;
  },
  strongest(view, source, target) {
    let best = { lag: view.lags[0] ?? 1, score: -Infinity };
    for (const lag of [0, ...view.lags]) {
      const score = this.score(view, source, target, lag);
      if (score > best.score) best = { lag, score };
    }
    return best;
  },
  score(view, source, target, lag) {
    if (lag === ALL) return this.strongest(view, source, target).score;
    const known = scoreOf(view, source, target, lag);
    return known ?? view.byKey.get(JSON.stringify([source, target, lag]))?.score ?? 0;
  },

  draw() {
    const lags = this.lags(), view = currentView(), count = view.variables.length;
    const { size, columns, left, top } = this.arrange(Math.max(lags.length, 1));
    const shown = new Set(shownEdges().filter((edge) => edge.chosen).map((edge) => edge.key));
    this.panels = lags.map((lag, i) => {
      const x = stage.panX + stage.zoom * (left + (i % columns) * (size + 26));
      const y = stage.panY + stage.zoom * (top + Math.floor(i / columns) * (size + 44));
      return { lag, x, y, size: stage.zoom * size, cell: (stage.zoom * size) / count, first: i % columns === 0, last: i + columns >= lags.length };
    });
    for (const panel of this.panels) this.drawPanel(panel, view, shown);
    pen.globalAlpha = 1;
  },

  drawPanel(panel, view, shown) {
    const { x, y, size, cell, lag } = panel;
    pen.globalAlpha = 1;
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.image(view, lag), x, y, size, size);
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
    pen.fillStyle = colours.ink;
    pen.font = `600 12px ${FONT}`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(lag === ALL ? "all delays: the strongest of each pair" : lag ? `delay ${lag}` : "same row", x, y - 13);
    this.marks(panel, view, shown);
    this.labels(panel, view);
    this.cursor(panel, view);
  },

  // The scores of all cells, row by row: what `score` says, without a search for each of a million.
  cells(view, lag, order) {
    const count = order.length, place = new Map(order.map((name, i) => [name, i]));
    const found = new Float64Array(count * count);
    const note = (source, target, at, score) => {
      const cell = place.get(target) * count + place.get(source);
      if ((lag === ALL || at === lag) && score > found[cell]) found[cell] = score;
    };
    for (const edge of view.edges) note(edge.source, edge.target, edge.lag, edge.score);
    (view.scores || []).forEach((row, target) => row.forEach((cells, source) => cells.forEach((score, k) => {
      note(view.variables[source], view.variables[target], view.lags[k], score);
    })));
    return found;
  },

  // One pixel per cell; the canvas enlarges it.
  image(view, lag) {
    const id = `${views.indexOf(view)} ${lag} ${document.documentElement.dataset.theme}`;
    if (this.images.has(id)) return this.images.get(id);
    const order = this.order(view), count = order.length;
    const image = make("canvas", { width: count, height: count });
    const brush = image.getContext("2d"), pixels = brush.createImageData(count, count);
    const ends = [rgb(colours["heat-0"]), rgb(colours["heat-1"])];
    const scores = view.scores ? view.scores.flat(2).filter((score) => score > 0) : view.edges.map((edge) => edge.score);
    const top = scores.reduce((a, b) => Math.max(a, b), 1e-300);
    this.cells(view, lag, order).forEach((score, cell) => {
      const share = Math.sqrt(score / top), at = 4 * cell;
      for (let c = 0; c < 3; c++) pixels.data[at + c] = ends[0][c] + share * (ends[1][c] - ends[0][c]);
      pixels.data[at + 3] = 255;
    });
    brush.putImageData(pixels, 0, 0);
    this.images.set(id, image);
    return image;
  },

  marks({ x, y, cell, lag }, view, shown) {
    const row = new Map(this.order(view).map((name, i) => [name, i]));
    const part = Math.max(2, Math.min(cell * 0.36, 15));
    const corner = (key, right, colour) => {
      const [source, target, at] = JSON.parse(key);
      if ((at !== lag && lag !== ALL) || !row.has(source) || !row.has(target)) return;
      const left = x + row.get(source) * cell, up = y + row.get(target) * cell;
      const edge = right ? left + cell : left;
      pen.beginPath();
      pen.moveTo(edge, up);
      pen.lineTo(edge + (right ? -part : part), up);
      pen.lineTo(edge, up + part);
      pen.closePath();
      pen.fillStyle = colour;
      pen.fill();
      pen.strokeStyle = colours.surface;
      pen.lineWidth = cell > 14 ? 1 : 0.4;
      pen.stroke();
    };
    for (const key of shown) corner(key, false, colours.down);
    for (const key of trueKeys) corner(key, true, colours.truth);
  },

  labels({ x, y, cell, first, last, size }, view) {
    if (cell < 7) return;
    pen.font = `${cell > 18 ? 12 : cell > 10 ? 10 : 8}px ${FONT}`;
    pen.fillStyle = colours.quiet;
    const turned = cell < 34 || this.order(view).some((name) => pen.measureText(name).width > cell - 4);
    const labels = labelsOf(this.order(view), 90);
    this.order(view).forEach((name, i) => {
      if (first) {
        pen.textAlign = "right";
        pen.fillText(labels.get(name), x - 7, y + (i + 0.5) * cell);
      }
      if (!last) return;
      pen.save();
      pen.translate(x + (i + 0.5) * cell, y + size + 8);
      if (turned) pen.rotate(-Math.PI / 2);
      pen.textAlign = turned ? "right" : "center";
      pen.fillText(turned ? labels.get(name) : name, 0, turned ? 0 : 4);
      pen.restore();
    });
  },

  cursor({ x, y, cell, lag }, view) {
    const mark = highlighted();
    if (mark?.kind !== "edge") return;
    const [source, target, at] = JSON.parse(mark.key);
    if (at !== lag && lag !== ALL) return;
    const order = this.order(view);
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.strokeRect(x + order.indexOf(source) * cell, y + order.indexOf(target) * cell, cell, cell);
  },

  hit(px, py) {
    const view = currentView();
    for (const { x, y, size, cell, lag } of this.panels) {
      const column = Math.floor((px - x) / cell), row = Math.floor((py - y) / cell);
      if (px < x || py < y || px >= x + size || py >= y + size) continue;
      const order = this.order(view), source = order[column], target = order[row];
      if (lag === ALL) return { kind: "edge", key: JSON.stringify([source, target, this.strongest(view, source, target).lag]) };
      return lag === 0 && source === target ? null : { kind: "edge", key: JSON.stringify([source, target, lag]) };
    }
    return null;
  },

  where(thing) {
    if (thing.kind !== "edge") return null;
    const [source, target, lag] = JSON.parse(thing.key), view = currentView();
    const panel = this.panels.find((p) => p.lag === lag || p.lag === ALL), order = this.order(view);
    return panel && [panel.x + (order.indexOf(source) + 0.5) * panel.cell, panel.y + (order.indexOf(target) + 0.5) * panel.cell];
  },
};

function rgb(hex) {
  const digits = hex.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}
