// The time graph: one column per row of the past, arrows into the present.
const timePicture = {
  curves: [],
  dots: [],

  rows() {
    if (!state.focus) return currentView().variables;
    const rows = new Set([state.focus]);
    for (const edge of shownEdges()) rows.add(edge.source).add(edge.target);
    return currentView().variables.filter((name) => rows.has(name));
  },

  frame() {
    pen.font = `12.5px ${FONT}`;
    const widest = Math.max(...this.rows().map((name) => pen.measureText(name).width));
    const left = Math.min(widest, this.nameRoom()) + 34;
    const top = narrow() ? 96 : 52, right = narrow() ? 22 : 70; // of the zoom buttons, above or beside
    return { left, top, width: stage.width - left - right, height: stage.height - top - 70 };
  },

  nameRoom: () => (narrow() ? 100 : 150),

  draw() {
    const rows = this.rows(), view = currentView(), steps = view.maxLag;
    const frame = this.frame();
    const row = new Map(rows.map((name, i) => [name, i]));
    const place = (name, lag) =>
      toScreen(1 - lag / steps, rows.length > 1 ? row.get(name) / (rows.length - 1) : 0.5, frame);
    const gap = (stage.zoom * frame.height) / Math.max(rows.length - 1, 1);
    const mark = highlighted();
    this.grid(steps, frame);
    this.drawEdges(row, place, gap, mark);
    this.drawDots(rows, place, steps, gap, mark);
    pen.globalAlpha = 1;
  },

  grid(steps, frame) {
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = `600 12px ${FONT}`;
    for (let lag = 0; lag <= steps; lag++) {
      if (steps > 14 && lag % Math.ceil(steps / 10)) continue;
      const [x] = toScreen(1 - lag / steps, 0, frame);
      pen.fillStyle = colours.quiet;
      pen.fillText(lag ? (narrow() ? `−${lag}` : `t − ${lag}`) : "t", x, frame.top - 30);
    }
  },

  drawEdges(row, place, gap, mark) {
    const top = Math.max(...currentView().edges.map((edge) => edge.score), 1e-300);
    this.curves = [];
    const dot = Math.max(2.5, Math.min(9, gap * 0.3));
    for (const edge of [...shownEdges()].reverse()) {
      if (!row.has(edge.source) || !row.has(edge.target)) continue;
      const [x0, y0] = place(edge.source, edge.lag), [x1, y1] = place(edge.target, 0);
      const points = edge.lag ? sideways(x0, y0, x1, y1, dot) : bow(x0, y0, x1, y1, dot);
      const width = Math.min(strokeWidth(edge, top), Math.max(1, gap * 0.35));
      const size = Math.min(6 + 1.5 * width, Math.max(4, gap * 0.8));
      const [ex, ey] = points[points.length - 1], [bx, by] = points[points.length - 2];
      const angle = Math.atan2(ey - by, ex - bx);
      const clear = standsOut(edge, mark) && (mark?.kind !== "edge" || edge.key === mark.key);
      const [alpha, dashes] = lineOf(edge);
      pen.globalAlpha = clear ? alpha : 0.08;
      pen.strokeStyle = pen.fillStyle = colours[edge.way];
      pen.lineWidth = width;
      pen.setLineDash(dashes);
      pen.beginPath();
      pen.moveTo(...points[0]);
      for (const point of points.slice(1, -1)) pen.lineTo(...point);
      pen.lineTo(ex - 0.8 * size * Math.cos(angle), ey - 0.8 * size * Math.sin(angle));
      pen.stroke();
      pen.setLineDash([]);
      arrowHead(ex, ey, angle, size);
      this.curves.push({ arrow: edge, points });
    }
  },

  drawDots(rows, place, steps, gap, mark) {
    this.dots = [];
    const dot = Math.max(1.2, Math.min(7, gap * 0.28));
    rows.forEach((name) => {
      const picked = state.variable === name || state.focus === name || stage.hover?.key === name;
      for (let lag = 0; lag <= steps; lag++) {
        const [x, y] = place(name, lag);
        pen.globalAlpha = 1;
        pen.beginPath();
        pen.arc(x, y, dot, 0, 2 * Math.PI);
        pen.fillStyle = picked ? colours.accent : lag ? colours.surface : colours.quiet;
        pen.strokeStyle = picked ? colours.accent : colours.quiet;
        pen.lineWidth = 1;
        pen.fill();
        pen.stroke();
        this.dots.push({ name, x, y, r: Math.max(dot, 5) });
      }
      if (gap < 9.5 && !picked) return;
      const [x, y] = place(name, steps);
      pen.font = `${picked ? "600 " : ""}${gap < 15 ? 10 : 12.5}px ${FONT}`;
      pen.textAlign = "right";
      pen.fillStyle = picked ? colours.accent : colours.ink;
      const label = clipMiddle(name, this.nameRoom());
      pen.fillText(label, x - dot - 9, y);
      this.dots.push({ name, x: x - dot - 9 - pen.measureText(label).width / 2, y, r: 12 });
    });
  },

  hit(x, y) {
    const dot = this.dots.find((spot) => Math.hypot(x - spot.x, y - spot.y) <= spot.r);
    if (dot) return { kind: "variable", key: dot.name };
    const edge = nearest(this.curves, x, y);
    return edge && { kind: "edge", key: edge.key };
  },

  where(thing) {
    if (thing.kind === "variable") {
      const dot = this.dots.find((spot) => spot.name === thing.key);
      return dot && [dot.x, dot.y];
    }
    const found = this.curves.find(({ arrow }) => arrow.key === thing.key);
    return found && found.points[Math.floor(found.points.length / 2)];
  },
};

// From left to right, leaving and arriving level, as a flow diagram does.
function sideways(x0, y0, x1, y1, dot) {
  const middle = 0.5 * (x1 - x0);
  const [a, b, end] = [x0 + middle, x1 - middle, x1 - dot - 2];
  return Array.from({ length: 33 }, (_, i) => {
    const t = i / 32, u = 1 - t;
    return [u ** 3 * (x0 + dot) + 3 * t * u * u * a + 3 * t * t * u * b + t ** 3 * end, u ** 3 * y0 + 3 * t * u * u * y0 + 3 * t * t * u * y1 + t ** 3 * y1];
  });
}
// Within the same row of the data: a bow to the right.
function bow(x0, y0, x1, y1, dot) {
  const out = 26 + Math.abs(y1 - y0) * 0.15;
  return Array.from({ length: 25 }, (_, i) => {
    const t = i / 24;
    return [x0 + dot + 2 + 4 * out * t * (1 - t), y0 + t * (y1 - y0)];
  });
}
