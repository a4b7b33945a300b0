// The summary graph: variables as boxes, one arrow per pair, labelled with its delays.
const places = new Map(names.map((name, i) => [name, [...data.layout.places[i]]]));
const MANY_LABELS = 110; // arrows beyond which delays are written only where the eye is
const FEW = 8; // variables that a phone shows at full size
const BEND = 0.16;

function summaryFrame() {
  const left = narrow() ? 52 : drawnSmall() ? 46 : 78, right = narrow() ? 52 : drawnSmall() ? 78 : 84; // the zoom buttons are on the right
  const top = narrow() ? (state.selfs ? 96 : 64) : 66; // a link to itself reaches up from the highest box
  return { left, top, width: stage.width - left - right, height: stage.height - top - 72 };
}
const narrow = () => stage.width < 520;
// In focus, causes stand to the left of the variable and effects to the right.
const near = { key: "", places: new Map() };
function nearPlaces() {
  const edges = shownEdges(), key = JSON.stringify([state.focus, state.view, edges.map((edge) => edge.key)]);
  if (near.key === key) return near.places;
  const causes = new Set(), effects = new Set();
  for (const edge of edges) {
    if (edge.source === edge.target) continue;
    if (edge.target === state.focus) causes.add(edge.source);
    else effects.add(edge.target);
  }
  near.key = key;
  const rest = [...effects].filter((name) => !causes.has(name));
  near.places = new Map([[state.focus, [rest.length === 0 ? 0.8 : causes.size === 0 ? -0.8 : 0, 0]]]);
  const column = (list, x) => list.forEach((name, i) => {
    const bulge = list.length > 2 ? 0.25 * Math.cos(((i + 0.5) / list.length - 0.5) * Math.PI) : 0;
    near.places.set(name, [x + Math.sign(x) * bulge, list.length > 1 ? 0.92 - (1.84 * i) / (list.length - 1) : 0.25]);
  });
  column([...causes], -1);
  column(rest, 1);
  return near.places;
}
const placesNow = () => (state.focus && currentView().variables.includes(state.focus) ? nearPlaces() : places);
// Among many, a variable without a link to another is listed in the panel, not drawn.
const FEW_TO_LIST = 14;
function unlinked() {
  const view = currentView();
  if (view.unlinked) return view.unlinked;
  const linked = new Set(view.edges.filter((edge) => edge.source !== edge.target).flatMap((edge) => [edge.source, edge.target]));
  const alone = view.variables.length > FEW_TO_LIST && linked.size ? view.variables.filter((name) => !linked.has(name)) : [];
  view.unlinked = new Set(alone);
  return view.unlinked;
}
function drawnNames() {
  const now = placesNow(), hidden = state.extra || state.selfs ? new Set() : unlinked();
  return currentView().variables.filter((name) => now.has(name) && (!hidden.has(name) || name === state.variable || name === state.focus));
}
let drawnCount = 0; // as measured last
const drawnSmall = () => drawnCount > (narrow() ? FEW : 30);
// The variables without a link have the lowest row; where it is not drawn, the others fill its room.
const depth = () => (placesNow() === places && !state.extra && !state.selfs && unlinked().size ? 1.74 : 2);
function placeOf(name) {
  const [x, y] = placesNow().get(name);
  return toScreen((x / 1.45 + 1) / 2, (1 - y) / depth(), summaryFrame());
}
const nameFont = () => `${drawnSmall() ? 11 : narrow() ? 12 : 13}px ${FONT}`;
const boxes = new Map(); // name -> {x, y, w, h, label}, as drawn

function measureBoxes() {
  const shown = drawnNames();
  drawnCount = shown.length;
  const small = drawnSmall(), dot = dotSize(shown.length);
  pen.font = nameFont();
  boxes.clear();
  const labels = labelsOf(shown, small ? 90 : narrow() ? 98 : 150);
  for (const name of small ? byImportance(shown) : shown) {
    let [x, y] = placeOf(name);
    const label = labels.get(name);
    const w = Math.max(pen.measureText(label).width + (small ? 10 : 20), small ? 20 : 38);
    if (stage.zoom === 1 && stage.panX === 0) x = Math.max(w / 2 + 3, Math.min(x, stage.width - w / 2 - 3));
    boxes.set(name, { x, y, w, h: small ? 18 : 28, label });
  }
  const rooms = small ? [[6, 14], [3, 3]] : [[16, 30], [8, 14], [4, 4]]; // what is left of it where boxes are many
  const taken = [...boxes.values()].reduce((sum, box) => sum + box.w * box.h, 0);
  if (taken < MOST_TAKEN * stage.zoom ** 2 * stage.width * stage.height) for (const room of rooms) pushApart([...boxes.values()], room);
  if (!small) return;
  if (narrow() && !stage.hover) pushApart([...chosenNames()].flatMap((name) => boxes.get(name) || []), [3, 3]);
  const all = [...boxes];
  boxes.clear();
  for (const [name, box] of all) boxes.set(name, covers(box) ? { ...box, w: dot, h: dot, label: "" } : box);
  const named = [...boxes.values()].filter((box) => box.label);
  for (const box of boxes.values()) if (!box.label) moveBeside(box, named);
}
// A dot on a name would hide letters: it moves above or below it.
function moveBeside(dot, named) {
  for (const box of named) {
    const reach = (box.h + dot.h) / 2 + 1;
    if (Math.abs(dot.x - box.x) < (box.w + dot.w) / 2 && Math.abs(dot.y - box.y) < reach) dot.y = box.y + (dot.y < box.y ? -reach : reach);
  }
}
// Boxes that cover each other, or leave no room for an arrow, move apart the shorter way.
const MOST_TAKEN = 0.35, ROUNDS = 60; // share of the picture that names may take up for that
function pushApart(list, [padX, padY]) {
  const whole = stage.zoom === 1 && stage.panX === 0, { top, height } = summaryFrame();
  for (let round = 0, moved = true; moved && round < ROUNDS; round++) {
    moved = false;
    list.forEach((a, i) => list.slice(i + 1).forEach((b) => {
      const dx = b.x - a.x, dy = b.y - a.y;
      const overX = (a.w + b.w) / 2 + padX - Math.abs(dx), overY = (a.h + b.h) / 2 + padY - Math.abs(dy);
      if (overX <= 0.5 || overY <= 0.5) return;
      moved = true;
      const [axis, by] = overY <= overX ? ["y", (overY / 2) * (dy < 0 ? -1 : 1)] : ["x", (overX / 2) * (dx < 0 ? -1 : 1)];
      a[axis] -= by;
      b[axis] += by;
    }));
    if (whole) for (const box of list) {
      box.x = Math.max(box.w / 2 + 3, Math.min(box.x, stage.width - box.w / 2 - 3));
      box.y = Math.max(top - 20, Math.min(box.y, top + height + 20));
    }
  }
}
// Among many, names that would cover others become dots until there is room: zoom in, or point at one.
// So many that they would hide the arrows are smaller.
const DOT = 11, LEAST_DOT = 4, LEAST_HIT = 5, FINGER = 16;
function dotSize(count) {
  const { width, height } = summaryFrame();
  return Math.max(LEAST_DOT, Math.min(DOT, 0.5 * stage.zoom * Math.sqrt((width * height) / count)));
}
function byImportance(list) {
  const links = new Map(list.map((name) => [name, 0]));
  for (const { source, target } of currentView().edges) for (const name of [source, target]) if (links.has(name)) links.set(name, links.get(name) + 1);
  for (const name of chosenNames()) if (links.has(name)) links.set(name, 1e6 + links.get(name));
  for (const name of [state.variable, state.focus, stage.hover?.key]) if (links.has(name)) links.set(name, 1e9);
  return [...list].sort((a, b) => links.get(b) - links.get(a));
}
// What is selected or pointed at, with what it is linked to: a phone has room for these names.
function chosenNames() {
  const mark = highlighted();
  return new Set(mark ? shownEdges().filter((edge) => standsOut(edge, mark)).flatMap((edge) => [edge.source, edge.target]) : []);
}
function covers(box) {
  for (const other of boxes.values()) {
    if (Math.abs(box.x - other.x) < (box.w + other.w) / 2 && Math.abs(box.y - other.y) < (box.h + other.h) / 2) return true;
  }
  return false;
}

// Edges of the same pair are one arrow: the strongest gives its width and line, the direction with
// the larger sum of scores its colour; all give delays, and an arrow with both directions a mark.
function arrowsOf(edges) {
  const found = new Map();
  for (const edge of edges) {
    const pair = JSON.stringify([edge.source, edge.target]);
    const arrow = found.get(pair);
    if (!arrow) found.set(pair, { ...edge, lags: [edge.lag], sums: { [edge.way]: edge.score } });
    else {
      arrow.lags.push(edge.lag);
      arrow.sums[edge.way] = (arrow.sums[edge.way] || 0) + edge.score;
      if (edge.chosen > arrow.chosen || (edge.chosen === arrow.chosen && edge.score > arrow.score)) Object.assign(arrow, edge);
    }
  }
  return [...found.values()].map((arrow) => {
    const [[way]] = Object.entries(arrow.sums).sort((a, b) => b[1] - a[1]);
    return { ...arrow, way, mixed: "up" in arrow.sums && "down" in arrow.sums };
  });
}

// Points of a curve from box to box; the ends are moved to the borders.
function curveOf(arrow) {
  const from = boxes.get(arrow.source), to = boxes.get(arrow.target);
  if (!from || !to) return null;
  if (arrow.source === arrow.target) return loopOf(from);
  const dx = to.x - from.x, dy = to.y - from.y;
  const cx = (from.x + to.x) / 2 + BEND * dy, cy = (from.y + to.y) / 2 - BEND * dx;
  const point = (t) => [
    (1 - t) ** 2 * from.x + 2 * t * (1 - t) * cx + t * t * to.x,
    (1 - t) ** 2 * from.y + 2 * t * (1 - t) * cy + t * t * to.y,
  ];
  const start = border(point, from, 0, 1), end = border(point, to, 1, 0);
  return { point: (t) => point(start + t * (end - start)) };
}
function border(point, box, inside, outside) {
  const margin = 4;
  for (let i = 0; i < 14; i++) {
    const middle = (inside + outside) / 2;
    const [x, y] = point(middle);
    const within = Math.abs(x - box.x) < box.w / 2 + margin && Math.abs(y - box.y) < box.h / 2 + margin;
    if (within) inside = middle;
    else outside = middle;
  }
  return outside;
}
function loopOf(box) {
  const up = box.y <= toScreen(0.5, 0.5, summaryFrame())[1] + 1 ? -1 : 1;
  const reach = drawnSmall() ? 26 : 46, wide = drawnSmall() ? 20 : 30, foot = drawnSmall() ? 5 : 8;
  const y0 = box.y + up * (box.h / 2 + 3), tip = y0 + up * reach;
  const point = (t) => {
    const a = (1 - t) ** 3, b = 3 * t * (1 - t) ** 2, c = 3 * t * t * (1 - t), d = t ** 3;
    return [box.x + (d - a) * foot + (c - b) * wide, (a + d) * y0 + (b + c) * tip];
  };
  return { point };
}

const summaryPicture = {
  curves: [], // as drawn, for the pointer: {arrow, points}

  draw() {
    measureBoxes();
    const arrows = arrowsOf(shownEdges()).sort((a, b) => a.score - b.score);
    const top = Math.max(...currentView().edges.map((edge) => edge.score), 1e-300);
    this.slim = arrows.length > MANY_LABELS ? 0.6 : 1;
    const mark = highlighted();
    this.curves = [];
    for (const arrow of arrows) this.drawArrow(arrow, top, mark);
    this.drawLabels(mark);
    this.drawBoxes(mark, arrows);
    pen.globalAlpha = 1;
  },

  drawArrow(arrow, top, mark) {
    const curve = curveOf(arrow);
    if (!curve) return;
    const width = this.slim * strokeWidth(arrow, top);
    const size = 6 + 1.9 * width;
    const points = [];
    const steps = this.slim < 1 ? 10 : 24;
    for (let i = 0; i <= steps; i++) points.push(curve.point(i / steps));
    const [ex, ey] = points[steps], [bx, by] = points[steps - 1];
    const angle = Math.atan2(ey - by, ex - bx);
    const clear = standsOut(arrow, mark);
    const [alpha, dashes] = lineOf(arrow);
    pen.globalAlpha = clear ? alpha * (mark ? 1 : Math.min(1, this.slim + 0.15)) : 0.1;
    pen.strokeStyle = pen.fillStyle = colours[arrow.way];
    pen.lineWidth = width;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(...points[0]);
    for (let i = 1; i < steps; i++) pen.lineTo(...points[i]);
    pen.lineTo(ex - 0.8 * size * Math.cos(angle), ey - 0.8 * size * Math.sin(angle));
    pen.stroke();
    pen.setLineDash([]);
    arrowHead(ex, ey, angle, size);
    this.curves.push({ arrow, points, clear, width });
  },

  drawLabels(mark) {
    const many = this.curves.length > (narrow() ? MANY_LABELS / 4 : MANY_LABELS) && stage.zoom < 2;
    const taken = [...boxes.values()].map((b) => [b.x - b.w / 2, b.y - b.h / 2, b.w, b.h]);
    pen.font = `600 11px ${FONT}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const { arrow, points, clear } of [...this.curves].reverse()) {
      if (!clear || (many && !mark)) continue;
      const lags = [...arrow.lags].sort((a, b) => a - b);
      const text = (lags.length > 4 ? `${lags[0]}–${lags[lags.length - 1]}` : lags.join(", ")) + (arrow.mixed ? " ±" : "");
      const w = pen.measureText(text).width + 9, h = 16;
      const [x, y] = freeSpot(points, w, h, taken);
      taken.push([x - w / 2, y - h / 2, w, h]);
      pen.globalAlpha = 1;
      pen.fillStyle = colours.surface;
      pen.strokeStyle = colours[arrow.way];
      pen.lineWidth = 1;
      roundBox(x - w / 2, y - h / 2, w, h, 8);
      pen.fill();
      pen.stroke();
      pen.fillStyle = colours.ink;
      pen.fillText(text, x, y + 0.5);
    }
  },

  drawBoxes(mark, arrows) {
    const close = new Set(arrows.flatMap((arrow) => (standsOut(arrow, mark) ? [arrow.source, arrow.target] : [])));
    pen.font = nameFont();
    for (const [name, box] of boxes) {
      const picked = state.variable === name || state.focus === name || stage.hover?.key === name;
      const faint = mark && !close.has(name) && !picked;
      pen.globalAlpha = faint ? 0.3 : 1;
      pen.fillStyle = picked ? colours["accent-soft"] : colours.raised;
      pen.strokeStyle = picked ? colours.accent : colours.quiet;
      pen.lineWidth = picked ? 2 : 1;
      roundBox(box.x - box.w / 2, box.y - box.h / 2, box.w, box.h, 7);
      pen.fill();
      pen.stroke();
      pen.fillStyle = colours.ink;
      pen.fillText(box.label, box.x, box.y + 0.5);
    }
  },

  hit(x, y) {
    for (const [name, box] of boxes) {
      if (Math.abs(x - box.x) <= Math.max(box.w / 2, LEAST_HIT) && Math.abs(y - box.y) <= Math.max(box.h / 2, LEAST_HIT)) return { kind: "variable", key: name };
    }
    if (narrow()) { // a finger is wider than a dot
      const [name, away] = [...boxes].map(([name, box]) => [name, Math.hypot(x - box.x, y - box.y)]).sort((a, b) => a[1] - b[1])[0] || [];
      if (away < FINGER) return { kind: "variable", key: name };
    }
    const arrow = nearest(this.curves, x, y);
    return arrow && { kind: "edge", key: arrow.key };
  },

  move(name, x, y) {
    const frame = summaryFrame();
    const u = (x - stage.panX) / stage.zoom, v = (y - stage.panY) / stage.zoom;
    placesNow().set(name, [(((u - frame.left) / frame.width) * 2 - 1) * 1.45, 1 - ((v - frame.top) / frame.height) * depth()]);
  },

  where(thing) {
    if (thing.kind === "variable") return boxes.get(thing.key) && [boxes.get(thing.key).x, boxes.get(thing.key).y];
    const pair = JSON.parse(thing.key);
    const found = this.curves.find(({ arrow }) => arrow.source === pair[0] && arrow.target === pair[1]);
    return found && found.points[Math.floor(found.points.length / 2)];
  },
};

// The first spot along the curve where a label covers neither a box nor another label.
function freeSpot(points, w, h, taken) {
  const last = points.length - 1;
  const along = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2].map((share) => {
    const place = share * last, i = Math.floor(place), rest = place - i;
    const [a, b] = [points[i], points[Math.min(i + 1, last)]];
    return [a[0] + rest * (b[0] - a[0]), a[1] + rest * (b[1] - a[1])];
  });
  const free = ([x, y]) => taken.every(([l, t, bw, bh]) => x + w / 2 < l || x - w / 2 > l + bw || y + h / 2 < t || y - h / 2 > t + bh);
  return along.find(free) || along[0];
}

// The drawn line closest to a point, if it is close at all.
function nearest(curves, x, y) {
  let best = 8, found = null;
  for (const { arrow, points } of curves) {
    for (let i = 1; i < points.length; i++) {
      const [ax, ay] = points[i - 1], [bx, by] = points[i];
      const length = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
      const share = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length));
      const distance = Math.hypot(x - ax - share * (bx - ax), y - ay - share * (by - ay));
      if (distance < best) [best, found] = [distance, arrow];
    }
  }
  return found;
}
