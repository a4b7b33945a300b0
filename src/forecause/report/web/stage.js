// The canvas: size, pan, zoom, pointer and keyboard. What is drawn comes from one of three pictures.
const canvas = $("canvas");
const pen = canvas.getContext("2d");
const FONT = getComputedStyle(document.body).fontFamily;

const stage = {
  width: 0, height: 0, zoom: 1, panX: 0, panY: 0,
  hover: null, // {kind: "edge" | "variable", key}
  picture: null,
  drawMs: 0,
};

// Pictures place things in a unit frame; this puts it on the screen with room for labels.
function toScreen(x, y, frame) {
  return [
    stage.panX + stage.zoom * (frame.left + x * frame.width),
    stage.panY + stage.zoom * (frame.top + y * frame.height),
  ];
}

function resize() {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const box = canvas.getBoundingClientRect();
  stage.width = box.width;
  stage.height = box.height;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawStage();
}

function drawStage() {
  if (!stage.picture || !stage.width) return;
  const start = performance.now();
  pen.clearRect(0, 0, stage.width, stage.height);
  stage.picture.draw();
  stage.drawMs = performance.now() - start;
}

let stageWaiting = false;
function drawSoon() {
  if (stageWaiting) return;
  stageWaiting = true;
  requestAnimationFrame(() => {
    stageWaiting = false;
    drawStage();
  });
}

function zoomBy(factor, x = stage.width / 2, y = stage.height / 2) {
  const next = Math.min(Math.max(stage.zoom * factor, 0.5), 40);
  stage.panX = x - ((x - stage.panX) * next) / stage.zoom;
  stage.panY = y - ((y - stage.panY) * next) / stage.zoom;
  stage.zoom = next;
  drawSoon();
}

function showAll() {
  Object.assign(stage, { zoom: 1, panX: 0, panY: 0 });
  drawSoon();
}

function clip(text, width) {
  if (pen.measureText(text).width <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && pen.measureText(letters.join("") + "…").width > width) letters.pop();
  return letters.join("") + "…";
}

// Labels of these names within a width that still differ: the middle is left out, and where that
// makes two alike, what comes before their difference.
function labelsOf(list, width) {
  const found = new Map(list.map((name) => [name, clipMiddle(name, width)]));
  const alike = new Map();
  for (const [name, label] of found) alike.set(label, [...(alike.get(label) || []), name]);
  for (const group of alike.values()) {
    if (group.length < 2) continue;
    let shared = 0;
    while (group.every((name) => shared < name.length && name[shared] === group[0][shared])) shared++;
    for (const name of group) found.set(name, clip("…" + name.slice(Math.max(0, shared - 2)), width));
  }
  return found;
}
function clipMiddle(text, width) {
  if (pen.measureText(text).width <= width) return text;
  const letters = [...text];
  let kept = letters.length - 1;
  const cut = () => letters.slice(0, Math.ceil(kept / 2)).join("") + "…" + letters.slice(letters.length - Math.floor(kept / 2)).join("");
  while (kept > 2 && pen.measureText(cut()).width > width) kept--;
  return cut();
}

function roundBox(x, y, width, height, radius) {
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
}

// Which edges and variables stand out: what the pointer is on, else what is selected.
function highlighted() {
  if (stage.hover) return stage.hover;
  if (state.edge) return { kind: "edge", key: state.edge };
  if (state.variable) return { kind: "variable", key: state.variable };
  return null;
}
function standsOut(edge, mark) {
  if (!mark) return true;
  if (mark.kind === "variable") return edge.source === mark.key || edge.target === mark.key;
  if (edge.key === mark.key) return true;
  const [source, target] = JSON.parse(mark.key);
  return edge.source === source && edge.target === target;
}
// A score is about the square of an effect, so its root is drawn: half as wide is half the effect.
const widthOf = (score, top) => 0.9 + 5.1 * Math.sqrt(Math.max(score, 0) / top);
const strokeWidth = (edge, top) => (edge.chosen ? widthOf(edge.score, top) : 1);
// Certainty is drawn as the line itself: whole, broken or dotted, and ever fainter.
const LINES = { firm: [1, []], likely: [0.8, [11, 5]], tentative: [0.6, [3, 4]] };
function lineOf(edge) {
  if (!edge.chosen) return [0.4, [1, 5]];
  if (edge.grade in LINES) return LINES[edge.grade];
  return [edge.sure === null ? 0.85 : 0.35 + 0.65 * Math.max(0, Math.min(1, edge.sure)), []];
}

function arrowHead(x, y, angle, size) {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - size * Math.cos(angle - 0.42), y - size * Math.sin(angle - 0.42));
  pen.lineTo(x - size * Math.cos(angle + 0.42), y - size * Math.sin(angle + 0.42));
  pen.closePath();
  pen.fill();
}

function select(thing) {
  if (!thing) update({ edge: "", variable: "" });
  else if (thing.kind === "edge") update({ edge: thing.key, variable: "" });
  else update({ variable: thing.key, edge: "" });
}

function tipText(thing) {
  if (thing.kind === "variable") return thing.key;
  const [source, target, lag] = JSON.parse(thing.key);
  const edge = currentView().byKey.get(thing.key);
  const score = edge ? edge.score : scoreOf(currentView(), source, target, lag);
  return `${source} → ${target}, ${delayName(lag)}: score ${format(score)}${edge ? "" : ", not chosen"}`;
}
function scoreOf(view, source, target, lag) {
  const i = view.variables.indexOf(target), j = view.variables.indexOf(source), k = view.lags.indexOf(lag);
  return view.scores && i >= 0 && j >= 0 && k >= 0 ? view.scores[i][j][k] : null;
}

let press = null;
function at(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}
canvas.addEventListener("pointerdown", (event) => {
  const [x, y] = at(event);
  press = { x, y, moved: false, thing: stage.picture.hit(x, y) };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = at(event);
  if (press) {
    if (Math.hypot(x - press.x, y - press.y) > 3) press.moved = true;
    if (!press.moved) return;
    canvas.classList.add("dragging");
    if (press.thing?.kind === "variable" && stage.picture.move) stage.picture.move(press.thing.key, x, y);
    else {
      stage.panX += event.movementX;
      stage.panY += event.movementY;
    }
    drawSoon();
    return;
  }
  hoverAt(x, y);
});
function hoverAt(x, y) {
  const thing = stage.picture.hit(x, y);
  if (thing?.key !== stage.hover?.key) {
    stage.hover = thing;
    canvas.classList.toggle("on-thing", Boolean(thing));
    drawSoon();
  }
  $("tip").style.display = thing ? "block" : "none";
  if (!thing) return;
  $("tip").textContent = tipText(thing);
  const room = Math.max(8, Math.min(x + 14, stage.width - $("tip").offsetWidth - 8));
  $("tip").style.left = room + "px";
  $("tip").style.top = (y > stage.height - 60 ? y - 40 : y + 16) + "px";
}
canvas.addEventListener("pointerup", (event) => {
  if (press && !press.moved) select(press.thing);
  press = null;
  canvas.classList.remove("dragging");
  drawSoon();
});
canvas.addEventListener("pointerleave", () => {
  stage.hover = null;
  $("tip").style.display = "none";
  drawSoon();
});
canvas.addEventListener("dblclick", (event) => {
  const thing = stage.picture.hit(...at(event));
  if (thing?.kind === "variable") update({ focus: state.focus === thing.key ? "" : thing.key });
});
// The wheel scrolls the page until the picture is in use.
canvas.addEventListener("wheel", (event) => {
  if (document.activeElement !== canvas && !event.ctrlKey) return;
  event.preventDefault();
  zoomBy(Math.exp(-event.deltaY * 0.0015), ...at(event));
}, { passive: false });

function step(list, current, by) {
  if (!list.length) return null;
  const place = list.indexOf(current);
  return list[(place + by + list.length + (place < 0 && by < 0 ? 1 : 0)) % list.length];
}
canvas.addEventListener("keydown", (event) => {
  const moves = { ArrowRight: ["variable", 1], ArrowLeft: ["variable", -1], ArrowDown: ["edge", 1], ArrowUp: ["edge", -1] };
  if (event.key in moves) {
    const [kind, by] = moves[event.key];
    const list = kind === "edge" ? shownEdges().map((edge) => edge.key) : currentView().variables;
    const key = step(list, state[kind], by);
    if (key) select({ kind, key });
  } else if (event.key === "+" || event.key === "=") zoomBy(1.3);
  else if (event.key === "-") zoomBy(1 / 1.3);
  else if (event.key === "0") showAll();
  else if (event.key === "f" && state.variable) update({ focus: state.focus === state.variable ? "" : state.variable });
  else if (event.key === "Escape") update({ edge: "", variable: "", focus: "" });
  else return;
  event.preventDefault();
});

// A matrix of many variables gets the height that its names need, as does any picture on a phone;
// others one screen.
const ROW_HEIGHT = 13, PHONE_PANEL = 250;
function sizeCanvas() {
  // The picture and its legend end with the first screen.
  const above = $("picture").getBoundingClientRect().top + scrollY + $("legend").offsetHeight;
  document.documentElement.style.setProperty("--above", `${Math.round(above + 4)}px`);
  const count = currentView().variables.length, heat = state.shape === "heat", phone = canvas.clientWidth < 520;
  let wanted = "";
  if (heat && count > MATRIX_FROM) wanted = `${count * ROW_HEIGHT + 200}px`;
  else if (heat && phone) wanted = `${heatPicture.lags().length * PHONE_PANEL + 190}px`;
  else if (phone && count > FEW) wanted = "470px";
  if (canvas.style.height !== wanted) canvas.style.height = wanted;
}
