/* The explorer's front: points by regl-scatterplot (reglScatterplot, bundled above), all that a question adds as SVG. */
const TEN = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F6A93", "#8C6D31", "#4D8C7A", "#A05252"];
const RAMP = ["#C3DBEC", "#8CBBDC", "#4F9BC9", "#0072B2", "#004A75", "#002A45"];
const NONE = "#C9C9C9";
const SVG = "http://www.w3.org/2000/svg";

const floats = (view, kind) => view ? new kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength)) : null;
const make = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
};
const draw = (tag, attributes, text) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
/* Names of clusters: the pixels of a cell that is tried, and the distances from a cluster's middle. */
const CELL = 4, FAR = [...Array(15)].map((_, i) => 8 * i);
const ink = document.createElement("canvas").getContext("2d");
const wide = text => { ink.font = '11px "Liberation Sans", Arial, Helvetica, "DejaVu Sans", sans-serif'; return ink.measureText(text).width; };
/* Boxes of a half width and height around a place, the nearest first, each beside the place where it is not on it. */
const around = (x, y, w, h) => FAR.flatMap(far => [...Array(far ? 16 : 1)].map((_, i) => {
  const [a, b] = far ? [Math.cos(i * Math.PI / 8), Math.sin(i * Math.PI / 8)] : [0, 0];
  const [cx, cy] = [x + far * a + w * (Math.abs(a) > 0.3) * Math.sign(a), y + far * b + h * (Math.abs(b) > 0.3) * Math.sign(b)];
  return [cx - w, cy - h, cx + w, cy + h];
}));
const crosses = ([x1, y1, x2, y2], [l, t, r, b]) => {
  const steps = Math.ceil(Math.hypot(x2 - x1, y2 - y1) / CELL);
  return [...Array(steps + 1)].some((_, i) => {
    const f = steps ? i / steps : 0, [px, py] = [x1 + f * (x2 - x1), y1 + f * (y2 - y1)];
    return px > l && px < r && py > t && py < b;
  });
};
/* What regl-scatterplot needs of a scale of d3. */
const scale = () => {
  let domain = [-1, 1], range = [0, 1];
  const f = v => range[0] + (v - domain[0]) / (domain[1] - domain[0]) * (range[1] - range[0]);
  f.domain = v => v === undefined ? domain : (domain = [...v], f);
  f.range = v => v === undefined ? range : (range = [...v], f);
  f.invert = v => domain[0] + (v - range[0]) / (range[1] - range[0]) * (domain[1] - domain[0]);
  return f;
};

function render({ model, el }) {
  const root = make("div", { className: "memlab-explorer" });
  const fill = (node, options) => node.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
  const ask = make("input", { type: "text", className: "ask", placeholder: "type a question, or pick one of the conversation's",
    title: "a question: Enter asks it" });
  const known = make("select", { title: "the conversation's questions" });
  known.style.maxWidth = "260px";
  const scopes = make("select", { title: "conversation" });
  const systems = [make("input", { type: "text", title: "first pipeline", size: 14 }), make("input", { type: "text",
    title: "second pipeline: drawn as triangles", placeholder: "and another", size: 14 })];
  const k = make("input", { type: "text", size: 2, title: "how many are returned" });
  const colour = make("select", { title: "what colours mean" });
  const sized = make("input", { type: "checkbox", title: "size by score" });
  const labelled = make("input", { type: "checkbox", checked: true });
  const time = make("input", { type: "range", min: 0, max: 1000, value: 1000, title: "show the memory as it was" });
  const day = make("span");
  const canvas = make("canvas", { className: "points" });
  const over = draw("svg", { class: "over" });
  const tip = make("div", { className: "tip", hidden: true });
  const map = make("div", { className: "map" }, canvas, over, tip);
  const side = make("div", { className: "side" });
  const key = make("div", { className: "key" });
  const problem = make("div", { className: "problem" });
  const count = make("span"), told = make("span");
  const lasso = make("button", { textContent: "lasso", title: "then draw around turns; shift and drag does the same" });
  const again = make("button", { textContent: "cluster again" });
  const search = make("button", { textContent: "ask among these", disabled: true });
  const golden = make("input", { type: "text", placeholder: "a question that these answer", size: 28 });
  const goldenAnswer = make("input", { type: "text", placeholder: "its answer", size: 12 });
  const save = make("button", { textContent: "save as evidence", disabled: true });
  const picked = make("div", { className: "row picked" }, lasso, count, again, search, golden, goldenAnswer, save, told);
  root.append(
    make("div", { className: "row" }, scopes, known, ask),
    make("div", { className: "row" }, make("label", {}, "ranked by", systems[0], systems[1]), make("label", {}, "first", k),
      make("label", {}, "colour", colour), make("label", {}, sized, "size by score"), make("label", {}, labelled, "names"),
      make("label", {}, "until", time, day)),
    problem, make("div", { className: "stage" }, map, side), key, picked);
  el.append(root);
  // JupyterLab takes keys for its own unless the very control says no: an x on a list would cut the cell.
  for (const control of root.querySelectorAll("input, select, button")) control.dataset.lmSuppressShortcuts = "";

  const [xScale, yScale] = [scale(), scale()];
  const plot = reglScatterplot.default({ canvas, xScale, yScale, pointSize: 4, pointSizeSelected: 1, pointOutlineWidth: 2,
    pointColorActive: "#000000", pointColorHover: "#000000", backgroundColor: "#ffffff", lassoOnLongPress: false,
    keyMap: { shift: "lasso", alt: "rotate" }, showReticle: false, opacity: 0.8 });
  let scene = null, x, y, times, asked = performance.now(), over_i = -1, shownUntil = Infinity;

  const codes = () => {
    const chosen = scene.colours[colour.value];
    if (chosen) return { values: floats(chosen.codes, Int32Array), names: chosen.names };
    const scores = new Float64Array(scene.n).fill(NaN);
    if (colour.value === "time" && times) scores.set(times);
    else for (const [i, s] of model.get("_view").systems?.[0]?.scores ?? []) scores[i] = s;
    return { scores };
  };
  const spread = values => {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (v === v) { low = Math.min(low, v); high = Math.max(high, v); }
    return v => v === v ? (high > low ? (v - low) / (high - low) : 1) : NaN;
  };

  let painting = false, shown = [null, RAMP], dot = 2.5;
  async function paint() {
    if (!scene) return;
    painting = true;  // drawing forgets what is picked
    const { values, names, scores } = codes(), n = scene.n;
    const category = new Float32Array(n), weight = new Float32Array(n);
    let palette;
    if (values) {
      const many = names.length > TEN.length;
      const kinds = Math.max(1, many ? TEN.length : names.length);
      for (let i = 0; i < n; i++) category[i] = values[i] < 0 ? kinds : values[i] % kinds;
      palette = [...TEN.slice(0, kinds), NONE];
    } else {
      const at = spread(scores);
      for (let i = 0; i < n; i++) { const v = at(scores[i]); category[i] = v === v ? Math.min(RAMP.length - 1, Math.floor(v * RAMP.length)) : RAMP.length; }
      palette = [...RAMP, NONE];
    }
    const ranked = new Float64Array(n).fill(NaN);
    for (const [i, s] of model.get("_view").systems?.[0]?.scores ?? []) ranked[i] = s;
    const size = spread(ranked);
    for (let i = 0; i < n; i++) { const v = size(ranked[i]); weight[i] = v === v ? Math.round(v * 4) : 0; }
    const base = n > 20000 ? 2 : n > 3000 ? 3 : 5;
    dot = (sized.checked ? base + 8 : base) / 2;
    plot.set({ colorBy: "valueA", pointColor: palette, sizeBy: sized.checked ? "valueB" : null,
      pointSize: sized.checked ? [base - 1, base + 1, base + 3, base + 5, base + 8] : base });
    await plot.draw({ x, y, valueA: category, valueB: weight }, { zDataType: "categorical", wDataType: "categorical" });
    if (shownUntil < Infinity) await until();
    plot.select(pickedRows(), { preventEvent: true });
    painting = false;
    shown = [values ? names : null, palette];
    keys(...shown);
    lay();
  }
  /* Takes over what the model says of time and colour, which Python may set too. */
  function settle() {
    shownUntil = times ? model.get("until") ?? Infinity : Infinity;
    const some = shownUntil < Infinity;
    if (document.activeElement !== time) time.value = some ? 1000 * Math.max(0, times.filter(t => t <= shownUntil).length - 1) / scene.n : 1000;
    day.textContent = some ? new Date(shownUntil).toISOString().slice(0, 10) : "";
    colour.value = model.get("colour");
    if (colour.selectedIndex < 0) colour.value = "cluster";
  }
  async function until() {
    await (shownUntil < Infinity ? plot.filter([...Array(scene.n).keys()].filter(seen)) : plot.unfilter());
    lay();
  }
  function slide() {
    const part = +time.value / 1000, sorted = scene.sorted ??= [...times].sort((a, b) => a - b);
    push("until", part < 1 ? sorted[Math.min(scene.n - 1, Math.floor(part * scene.n))] : null);
  }
  const seen = i => !times || times[i] <= shownUntil;
  const at = (a, b) => [xScale(a), yScale(b)];

  /* Tells whether a box of the screen holds a point, or a mark of the question: by sums over cells that move with the map. */
  function crowd(width, height, view) {
    const [x0, y0] = at(0, 0), [x1, y1] = at(1, 1), mod = v => (v % CELL + CELL) % CELL - CELL;
    const [left, top] = [mod(x0), mod(y0)], cols = Math.ceil((width - left) / CELL) + 1, rows = Math.ceil((height - top) / CELL) + 1;
    const sums = new Uint32Array((cols + 1) * (rows + 1));
    const add = (px, py) => {
      const c = Math.floor((px - left) / CELL), r = Math.floor((py - top) / CELL);
      if (c >= 0 && c < cols && r >= 0 && r < rows) sums[(r + 1) * (cols + 1) + c + 1]++;
    };
    for (let i = 0; i < scene.n; i++) if (seen(i)) add(x0 + x[i] * (x1 - x0), y0 + y[i] * (y1 - y0));
    const marked = [...(view.evidence ?? []), ...(view.systems ?? []).flatMap(system => system.rows.map(row => row.i))].map(i => at(x[i], y[i]));
    if (view.text) marked.push(at(view.x, view.y));
    for (const [px, py] of marked) for (const dx of [-6, 0, 6]) for (const dy of [-6, 0, 6]) add(px + dx, py + dy);
    for (let r = 1; r <= rows; r++) for (let c = 1; c <= cols; c++) {
      const i = r * (cols + 1) + c;
      sums[i] += sums[i - 1] + sums[i - cols - 1] - sums[i - cols - 2];
    }
    // A point grows as the plot's do, when one zooms in.
    const half = 1 + dot * Math.asinh(Math.max(1, plot.get("camera").scaling[0])) / Math.asinh(1);
    const cell = (v, start, most) => Math.max(0, Math.min(most, Math.floor((v - start) / CELL)));
    return (l, t, r, b) => {
      const c0 = cell(l - half, left, cols - 1), c1 = cell(r + half, left, cols - 1) + 1, r0 = cell(t - half, top, rows - 1), r1 = cell(b + half, top, rows - 1) + 1;
      return sums[r1 * (cols + 1) + c1] - sums[r0 * (cols + 1) + c1] - sums[r1 * (cols + 1) + c0] + sums[r0 * (cols + 1) + c0];
    };
  }
  function lay() {
    if (!scene) return;
    const parts = [], view = model.get("_view"), { width, height } = map.getBoundingClientRect();
    if (labelled.checked) {
      const taken = [], leaders = [], points = crowd(width, height, view), lines = [], names = [];
      // The largest first, each in the nearest free place; names that find none wait until one zooms in.
      for (const label of scene.labels) {
        const [cx, cy] = at(label.x, label.y), w = label.width ??= wide(label.text) / 2 + 3, h = 8;
        if (cx < 0 || cx > width || cy < 0 || cy > height) continue;
        const leader = ([l, t, r, b]) => [cx, cy, Math.max(l, Math.min(r, cx)), Math.max(t, Math.min(b, cy))];
        const box = around(cx, cy, w, h).find(box => {
          const [l, t, r, b] = box;
          return l > 1 && t > 1 && r < width - 1 && b < height - 1 && !points(l, t, r, b)
            && !taken.some(o => l < o[2] && o[0] < r && t < o[3] && o[1] < b || crosses(leader(box), o)) && !leaders.some(o => crosses(o, box));
        });
        if (!box) continue;
        const [l, t, r, b] = box, [x1, y1, x2, y2] = leader(box);
        taken.push(box);
        leaders.push([x1, y1, x2, y2]);
        if (Math.hypot(x2 - x1, y2 - y1) > 12) lines.push(draw("line", { x1, y1, x2, y2, stroke: "#555", "stroke-width": 0.7 }),
          draw("circle", { cx, cy, r: 1.8, fill: "#222", stroke: "#fff", "stroke-width": 0.5 }));
        names.push(draw("text", { x: (l + r) / 2, y: (t + b) / 2 + 4, "text-anchor": "middle", "font-size": 11, fill: "#222", stroke: "#fff",
          "stroke-width": 3, "paint-order": "stroke", class: "name" }, label.text));
      }
      parts.push(...lines, ...names);
    }
    if (view.text) {
      const q = at(view.x, view.y), marks = [];
      const line = (i, attributes) => { const p = at(x[i], y[i]);
        parts.push(draw("line", { x1: q[0], y1: q[1], x2: p[0], y2: p[1], ...attributes })); return p; };
      const mark = (node, i, kind) => { node.dataset.i = i; node.setAttribute("class", kind); marks.push(node); };
      view.systems.forEach((system, s) => {
        for (const row of system.rows) {
          if (!seen(row.i)) continue;
          const p = line(row.i, row.hit ? { stroke: "#0072B2", "stroke-width": 1.4 } : { stroke: "#999", "stroke-width": 0.6 });
          const r = s ? 10 : 7, look = { fill: row.hit ? "#0072B2" : "none", "fill-opacity": 0.9, stroke: row.hit ? "#000" : "#D55E00", "stroke-width": 1.6 };
          mark(s ? draw("path", { d: `M${p[0]} ${p[1] - r}L${p[0] + r * .87} ${p[1] + r / 2}L${p[0] - r * .87} ${p[1] + r / 2}Z`, ...look, fill: "none" })
            : row.hit ? draw("circle", { cx: p[0], cy: p[1], r: 5, ...look })
              : draw("rect", { x: p[0] - 4.5, y: p[1] - 4.5, width: 9, height: 9, ...look }), row.i, row.hit ? "hit" : "false");
        }
      });
      const found = new Set(view.systems[0]?.rows.filter(row => row.hit).map(row => row.i));
      for (const i of view.evidence) {
        if (!seen(i)) continue;
        const missed = !found.has(i);
        const p = missed ? line(i, { stroke: "#D55E00", "stroke-width": 1.2, "stroke-dasharray": "4 3" }) : at(x[i], y[i]);
        const star = [...Array(10)].map((_, j) => { const r = j % 2 ? 4 : 9, a = Math.PI * (j / 5 - .5);
          return `${p[0] + r * Math.cos(a)},${p[1] + r * Math.sin(a)}`; }).join(" ");
        mark(draw("polygon", { points: star, fill: missed ? "#fff" : "#F0E442", stroke: missed ? "#D55E00" : "#000", "stroke-width": 1.3 }), i, missed ? "missed" : "evidence");
      }
      parts.push(...marks);
      parts.push(draw("path", { d: `M${q[0] - 7} ${q[1]}H${q[0] + 7}M${q[0]} ${q[1] - 7}V${q[1] + 7}`, stroke: "#000", "stroke-width": 2.5, class: "question" }),
        draw("text", { x: q[0] + 9, y: q[1] - 7, "font-size": 12, "font-weight": 700, stroke: "#fff", "stroke-width": 3, "paint-order": "stroke" }, "?"));
    }
    over.replaceChildren(...parts);
  }
  function keys(names, palette) {
    const dots = names ? names.slice(0, TEN.length).map((name, i) => [palette[i], name])
      : [[RAMP[0], colour.value === "time" ? "earlier" : "lower"], [RAMP[5], colour.value === "time" ? "later" : "higher"]];
    if (names && names.length > TEN.length) dots.push(["#fff", `… and ${names.length - TEN.length} more, in the same colours`]);
    const [first, second] = model.get("systems");
    const marks = ["✚ the question", "● returned, evidence", "□ returned, not evidence", "★ evidence",
      `☆ evidence that ${second ? first : "was"} missed (dashed)`];
    if (second) marks.push(`△ returned by ${second} (black: evidence)`);
    key.replaceChildren(...marks.map(text => make("span", { textContent: text })), ...dots.map(([tint, name]) => {
      const dot = make("i", { className: "dot" });
      dot.style.background = tint;
      return make("span", {}, dot, name);
    }));
  }
  function list() {
    const view = model.get("_view");
    const cell = (text, className = "") => make("td", { textContent: text, className });
    const words = (text, note) => make("td", {}, text, make("small", { textContent: note }));
    const table = make("table"), head = make("tr");
    head.append(...["", "its best-matching sentence, and the question's words in it", "cosine"].map(text => make("th", { textContent: text })));
    for (const system of view.systems ?? []) {
      const hits = system.rows.filter(row => row.hit).length;
      const title = make("th", { colSpan: 3, textContent: view.evidence.length
        ? `${system.name}: ${hits} of ${view.evidence.length} evidence items in the first ${system.rows.length}` : system.name });
      table.append(make("tr", {}, title), head.cloneNode(true));
      for (const row of system.rows) {
        const line = make("tr", {}, cell(`${row.hit ? "●" : "□"} ${row.rank}`), words(row.text, row.words.join(", ")), cell(row.cosine.toFixed(2), "num"));
        line.dataset.i = row.i;
        table.append(line);
      }
      for (const row of system.missed) {
        const line = make("tr", {}, cell("☆"), words(row.text, row.rank ? `missed: rank ${row.rank}` : "missed: not ranked"), cell(row.cosine.toFixed(2), "num"));
        line.dataset.i = row.i;
        table.append(line);
      }
    }
    side.replaceChildren(table);
  }
  const choose = () => { known.value = model.get("question"); if (known.selectedIndex < 0) known.value = ""; };
  function show() {
    const view = model.get("_view");
    if (view.text !== undefined && document.activeElement !== ask) ask.value = view.text;
    choose();
    list();
    keys(...shown);
    lay();
    root.dataset.ms = (performance.now() - asked).toFixed(0);
    if (colour.value === "score" || sized.checked) paint();
  }
  function newScene() {
    scene = { ...model.get("_scene") };
    if (!scene.n) return;
    [x, y, times] = [floats(scene.x, Float32Array), floats(scene.y, Float32Array), floats(scene.times, Float64Array)];
    fill(scopes, scene.scopes.map(name => [name, name]));
    scopes.value = scene.scope;
    fill(known, [["", "pick a question…"], ...scene.questions]);
    fill(colour, [...Object.keys(scene.colours), ...(times ? ["time"] : []), "score"].map(name => [name, name]));
    time.disabled = !times;
    settle();
    paint().then(show);
  }
  const push = (name, value) => { asked = performance.now(); model.set(name, value); model.save_changes(); };
  const hover = (i, where) => {
    over_i = i;
    for (const row of side.querySelectorAll("tr[data-i]")) row.classList.toggle("lit", +row.dataset.i === i);
    if (i < 0) { tip.hidden = true; return; }
    const [px, py] = at(x[i], y[i]), { width, height } = map.getBoundingClientRect();
    Object.assign(tip.style, px > width / 2 ? { left: "", right: `${width - px + 14}px` } : { left: `${px + 14}px`, right: "" },
      py > height / 2 ? { top: "", bottom: `${height - py + 4}px` } : { top: `${py + 4}px`, bottom: "" });
    asked = performance.now();
    model.send({ kind: "text", i });
  };
  const pick = rows => {
    model.set("_picked", [...rows]);
    model.save_changes();
    chosen(rows);
  };
  const chosen = rows => {
    count.textContent = rows.length ? `${rows.length} picked` : "nothing picked";
    for (const button of [search, save]) button.disabled = !rows.length;
  };
  const pickedRows = () => [...model.get("_picked")];

  // JupyterLab would select cells from here on, and take every move of the mouse that the lasso needs.
  map.addEventListener("mousedown", e => { if (e.shiftKey) e.stopPropagation(); });
  plot.subscribe("view", lay);
  plot.subscribe("pointover", i => hover(i));
  plot.subscribe("pointout", () => hover(-1));
  // A lasso that ends where it began is a click for the plot too, which would pick one turn, or none.
  let lassoed = -1000;
  const clicked = rows => {
    if (performance.now() - lassoed > 300) pick(rows);
    else plot.select(pickedRows(), { preventEvent: true });
  };
  plot.subscribe("lassoEnd", () => { lassoed = performance.now(); });
  plot.subscribe("select", ({ points }) => points.length > 1 ? pick(points) : clicked(points));
  plot.subscribe("deselect", () => { if (!painting) clicked([]); });
  ask.addEventListener("keydown", e => { e.stopPropagation(); if (e.key === "Enter") push("question", ask.value); });
  for (const field of [golden, goldenAnswer, k, ...systems]) field.addEventListener("keydown", e => e.stopPropagation());
  known.addEventListener("change", () => { ask.blur(); push("question", known.value); });
  scopes.addEventListener("change", () => push("scope", scopes.value));
  for (const field of systems) field.addEventListener("change", () => push("systems", systems.map(s => s.value.trim()).filter(Boolean)));
  k.addEventListener("change", () => push("k", Math.max(1, parseInt(k.value) || 10)));
  colour.addEventListener("change", () => push("colour", colour.value));
  sized.addEventListener("change", paint);
  labelled.addEventListener("change", lay);
  time.addEventListener("input", slide);
  side.addEventListener("mouseover", e => { const row = e.target.closest("tr[data-i]"); if (row && +row.dataset.i !== over_i) hover(+row.dataset.i); });
  side.addEventListener("mouseleave", () => hover(-1));
  side.addEventListener("click", e => { const row = e.target.closest("tr[data-i]"); if (row) plot.zoomToPoints([+row.dataset.i], { padding: 3, transition: true }); });
  lasso.addEventListener("click", () => { const on = plot.get("mouseMode") !== "lasso"; plot.set({ mouseMode: on ? "lasso" : "panZoom" }); lasso.style.background = on ? "#cfe5f3" : ""; });
  again.addEventListener("click", () => model.send({ kind: "cluster" }));
  search.addEventListener("click", () => { asked = performance.now(); model.send({ kind: "search" }); });
  save.addEventListener("click", () => model.send({ kind: "save", question: golden.value, answer: goldenAnswer.value }));

  const heard = content => {
    if (content.kind === "text" && content.i === over_i) {
      tip.replaceChildren(make("b", { textContent: content.head }), content.text);
      tip.hidden = false;
      root.dataset.ms = (performance.now() - asked).toFixed(0);
    } else if (content.kind === "saved") {
      told.textContent = `saved as ${content.told}`;
    }
  };
  const follow = {
    "change:_scene": newScene, "change:_view": show,
    "change:question": choose,
    "change:colour": () => { settle(); paint(); },
    "change:until": () => { if (scene) { settle(); until(); } },
    "change:_picked": () => { const rows = pickedRows(); chosen(rows); plot.select(rows, { preventEvent: true }); },
    "change:problem": () => { problem.textContent = model.get("problem"); },
    "change:systems": () => { systems.forEach((s, i) => { s.value = model.get("systems")[i] ?? ""; }); },
    "change:k": () => { k.value = model.get("k"); },
    "msg:custom": heard,
  };
  for (const [event, f] of Object.entries(follow)) model.on(event, f);
  for (const event of ["problem", "systems", "k"]) follow[`change:${event}`]();
  const watcher = new ResizeObserver(() => { const { width, height } = map.getBoundingClientRect(); if (width) plot.set({ width, height }); lay(); });
  watcher.observe(map);
  newScene();
  chosen(pickedRows());
  root.plot = plot;  // for a test that measures frames
  return () => { watcher.disconnect(); for (const [event, f] of Object.entries(follow)) model.off(event, f); plot.destroy(); };
}
export default { render };
