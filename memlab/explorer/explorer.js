/* The explorer's front: points by regl-scatterplot (reglScatterplot, bundled above), all that a question adds as SVG. */
const RAMP = ["#C3DBEC", "#8CBBDC", "#4F9BC9", "#0072B2", "#004A75", "#002A45"];
const NONE = "#DCDCDC", LISTED = 24, MANY = 20000, PICKED = 100, RESTS = 400;
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
const stamp = ms => Number.isFinite(ms) ? new Date(ms).toLocaleString("en-GB", { timeZone: "UTC", day: "numeric", month: "short", year: "numeric",
  hour: "2-digit", minute: "2-digit" }) : "";
const date = ms => Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 10) : "";
/* Names of clusters: the pixels of a cell that is tried, the distances from a cluster's middle, those within which a name of a
   large cluster may cover points, and how many are large. A mark of the question counts as so many points. */
const CELL = 4, FAR = [...Array(15)].map((_, i) => 8 * i), NEAR = [0, 8, 16, 24], LARGE = 16, MARK = 1e6;
const ink = document.createElement("canvas").getContext("2d");
const wide = text => { ink.font = '700 11px "Liberation Sans", Arial, Helvetica, "DejaVu Sans", sans-serif'; return ink.measureText(text).width; };
/* Boxes of a half width and height around a place, the nearest first, each beside the place where it is not on it. */
const around = (x, y, w, h, distances) => distances.flatMap(far => [...Array(far ? 16 : 1)].map((_, i) => {
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
  const since = make("input", { type: "range", min: 0, max: 1000, value: 0, title: "hide what is earlier" });
  const sinceDay = make("span");
  const time = make("input", { type: "range", min: 0, max: 1000, value: 1000, title: "show the memory as it was" });
  const day = make("span");
  const find = make("input", { type: "text", className: "find", placeholder: "find words in the texts", size: 20, title: "Enter shows the turns that have all the words" });
  const speaker = make("select", { title: "show one speaker" }), cluster = make("select", { title: "show one cluster" });
  const own = make("input", { type: "checkbox", title: "show what the question asks for and what was returned, and nothing else" });
  const amount = make("span", { className: "amount" });
  const fit = make("button", { textContent: "fit", title: "show all turns" }), back = make("button", { textContent: "back", title: "the view before", disabled: true });
  const whole = make("button", { textContent: "full screen" });
  const busy = make("span", { className: "busy", role: "status", textContent: "working…", hidden: true });
  const canvas = make("canvas", { className: "points" });
  const pixels = make("canvas", { className: "moving", hidden: true });
  const over = draw("svg", { class: "over" });
  const tip = make("div", { className: "tip", hidden: true });
  const map = make("div", { className: "map" }, canvas, pixels, over, tip, busy);
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
  const reviewed = make("summary"), proposals = make("table");
  const review = make("details", { className: "review", open: true, hidden: true }, reviewed, proposals);
  root.append(
    make("div", { className: "row" }, scopes, known, ask),
    make("div", { className: "row" }, make("label", {}, "ranked by", systems[0], systems[1]), make("label", {}, "first", k),
      make("label", {}, "colour", colour), make("label", {}, sized, "size by score"), make("label", {}, labelled, "names"), fit, back, whole),
    make("div", { className: "row" }, find, make("label", {}, "speaker", speaker), make("label", {}, "cluster", cluster),
      make("label", {}, own, "only the question's turns"), make("label", {}, "from", since, sinceDay), make("label", {}, "until", time, day), amount),
    problem, make("div", { className: "stage" }, map, side), key, picked, review);
  // A shared page has no kernel: its questions were answered when it was written.
  const still = Boolean(model.get("_still"));
  root.classList.toggle("still", still);
  if (still) {
    for (const node of [ask, scopes, again, search, golden, goldenAnswer, save, review]) node.remove();
    for (const node of [...systems, k]) node.disabled = true;
  }
  el.append(root);
  // JupyterLab takes keys for its own unless the very control says no: an x on a list would cut the cell.
  for (const control of root.querySelectorAll("input, select, button")) control.dataset.lmSuppressShortcuts = "";

  let grabbed = null;
  const drag = e => {
    if (!grabbed) return;
    e.stopImmediatePropagation();
    move(e.clientX - grabbed[0], e.clientY - grabbed[1]);
    grabbed = [e.clientX, e.clientY];
  };
  const drop = () => { grabbed = null; settleMove(); };
  // Before the plot hears of a move, which would draw too.
  window.addEventListener("mousemove", drag, true);
  window.addEventListener("mouseup", drop, true);
  window.addEventListener("blur", drop);
  const [xScale, yScale] = [scale(), scale()];
  const large = (model.get("_scene")?.n ?? 0) > MANY;
  const plot = reglScatterplot.default({ canvas, xScale, yScale, pointSize: 4, pointSizeSelected: 1, pointOutlineWidth: 2,
    pointColorActive: "#000000", pointColorHover: "#000000", backgroundColor: "#ffffff", lassoOnLongPress: false,
    keyMap: { shift: "lasso", alt: "rotate" }, showReticle: false,
    // Without blending a half transparent point would be brighter than its colour.
    opacity: large ? 1 : 0.8, performanceMode: large });
  let scene = null, x, y, times, dated = false, visible = null, asked = performance.now(), over_i = -1, shownUntil = Infinity, shownSince = -Infinity;
  // What the map is narrowed to: a group's code by kind, and the turns that have the words; which clusters still have turns there.
  let kept = {}, found = null, present = new Set(), wanted = "", request = model.get("_request") ?? 0, answering = 0;
  const groups = {};
  const empty = {};
  /* What the question draws: nothing while its answer is under way, or is of another question. */
  const answer = () => {
    const view = model.get("_view");
    const stale = waiting() && answering === request || view.asked !== undefined && view.asked !== model.get("question");
    return stale ? empty : view;
  };
  // Another view of the same map counts on, too.
  const nextRequest = () => request = Math.max(request, model.get("_request") ?? 0, model.get("_answered") ?? 0) + 1;
  const waiting = () => (model.get("_answered") ?? 0) < request;
  const working = () => { busy.hidden = !waiting(); root.dataset.busy = waiting() ? "1" : ""; };

  const codes = () => {
    const chosen = groups[colour.value];
    if (chosen) return chosen;
    const scores = new Float64Array(scene.n).fill(NaN);
    if (colour.value === "time" && times) scores.set(times);
    else for (const [i, s] of answer().systems?.[0]?.scores ?? []) scores[i] = s;
    return { scores };
  };
  const spread = values => {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (v === v) { low = Math.min(low, v); high = Math.max(high, v); }
    return v => v === v ? (high > low ? (v - low) / (high - low) : 1) : NaN;
  };

  let painting = false, shown = [null, RAMP], dot = 2.5;
  // How each point is drawn: which of the colours and of the sizes it has.
  let look = { category: [], palette: [], weight: [], sizes: [] };
  async function paint() {
    if (!scene) return;
    painting = true;  // drawing forgets what is picked
    const { values, names, tints, scores } = codes(), n = scene.n;
    const category = new Float32Array(n), weight = new Float32Array(n);
    let palette;
    if (values) {
      for (let i = 0; i < n; i++) category[i] = values[i] < 0 ? tints.length : values[i];
      palette = [...tints, NONE];
    } else {
      const at = spread(scores);
      for (let i = 0; i < n; i++) { const v = at(scores[i]); category[i] = v === v ? Math.min(RAMP.length - 1, Math.floor(v * RAMP.length)) : RAMP.length; }
      palette = [...RAMP, NONE];
    }
    const ranked = new Float64Array(n).fill(NaN);
    for (const [i, s] of answer().systems?.[0]?.scores ?? []) ranked[i] = s;
    const size = spread(ranked);
    for (let i = 0; i < n; i++) { const v = size(ranked[i]); weight[i] = v === v ? Math.round(v * 4) : 0; }
    const base = n > MANY ? 2 : n > 3000 ? 3 : n > 1000 ? 5 : 7;
    dot = (sized.checked ? base + 8 : base) / 2;
    const sizes = sized.checked ? [base - 1, base + 1, base + 3, base + 5, base + 8] : [base, base, base, base, base];
    look = { category, palette, weight, sizes };
    plot.set({ colorBy: "valueA", pointColor: palette, sizeBy: sized.checked ? "valueB" : null, pointSize: sized.checked ? sizes : base });
    await plot.draw({ x, y, valueA: category, valueB: weight }, { zDataType: "categorical", wDataType: "categorical" });
    await sift(false);
    plot.select(pickedRows(), { preventEvent: true });
    painting = false;
    shown = [values ? names : null, palette];
    keys(...shown);
    lay();
    root.dataset.painted = (+(root.dataset.painted ?? 0) + 1).toString();
  }
  /* Takes over what the model says of time and colour, which Python may set too. */
  function settle() {
    shownUntil = dated ? model.get("until") ?? Infinity : Infinity;
    const some = shownUntil < Infinity;
    if (document.activeElement !== time) time.value = some ? 1000 * Math.max(0, times.filter(t => t <= shownUntil).length - 1) / scene.n : 1000;
    day.textContent = some ? date(shownUntil) : "";
    colour.value = model.get("colour");
    if (colour.selectedIndex < 0) colour.value = "cluster";
  }
  const moment = (slider, end) => {
    const part = +slider.value / 1000, sorted = scene.sorted ??= [...times].sort((a, b) => a - b);
    return part === end ? null : sorted[Math.min(scene.n - 1, Math.floor(part * scene.n))];
  };
  const slide = () => push("until", moment(time, 1));
  function slideSince() {
    shownSince = moment(since, 0) ?? -Infinity;
    sinceDay.textContent = date(shownSince);
    sift();
  }
  /* Hides what the filters leave out, and says how much is left. */
  async function sift(drawn = true) {
    if (!scene) return;
    const n = scene.n, view = answer(), kinds = Object.keys(kept).filter(kind => groups[kind] && kept[kind] !== null);
    const mine = own.checked && view.text ? new Set([...view.evidence, ...view.systems.flatMap(system => system.rows.map(row => row.i))]) : null;
    visible = new Uint8Array(n);
    const rows = [];
    present = new Set();
    for (let i = 0; i < n; i++) {
      const stays = (!dated || times[i] <= shownUntil && times[i] >= shownSince) && (!found || found.has(i)) && (!mine || mine.has(i))
        && kinds.every(kind => groups[kind].values[i] === kept[kind]);
      if (stays) { visible[i] = 1; rows.push(i); present.add(groups.cluster.values[i]); }
    }
    const all = rows.length === n;
    amount.textContent = all ? "" : `${rows.length.toLocaleString("en")} of ${n.toLocaleString("en")} turns shown`;
    root.dataset.shown = rows.length;
    if (!all) await plot.filter(rows);
    else if (plot.get("isPointsFiltered")) await plot.unfilter();
    if (drawn) lay();
  }
  function keep(kind, code) {
    kept = { ...kept, [kind]: code };
    for (const [name, list] of [["speaker", speaker], ["cluster", cluster]]) list.value = kept[name] === null || kept[name] === undefined ? "" : String(kept[name]);
    keys(...shown);
    sift();
  }
  const seen = i => !visible || visible[i] === 1;
  /* Where the points are drawn: the plot's own scales lag behind a change of its size. */
  let eye = null, ends = [0, 0], along = 0;
  function aim() {
    eye = null;
    if (ends[0] === ends[1] || !plot.get("isPointsDrawn")) return;
    const [a, b] = ends.map(i => plot.getScreenPosition(i)), unit = Math.abs(b[along] - a[along]) / Math.abs([x, y][along][ends[1]] - [x, y][along][ends[0]]);
    eye = { unit, left: a[0] - unit * x[ends[0]], top: a[1] + unit * y[ends[0]] };
  }
  const at = (a, b) => eye ? [eye.left + eye.unit * a, eye.top - eye.unit * b] : [xScale(a), yScale(b)];

  /* The way back from each zoom: a view is kept before it is left; turns of the wheel that follow each other are one. */
  const views = [];
  let turned = -1000, home = null;
  const same = (a, b) => a && b && a.every((v, i) => Math.abs(v - b[i]) < 1e-6);
  const viewed = () => [...plot.get("cameraView")];
  function leave() {
    const now = viewed();
    if (!same(views[views.length - 1], now)) views.push(now);
    if (views.length > 100) views.shift();
    back.disabled = false;
  }
  function goBack() {
    const now = viewed();
    let before = views.pop();
    while (before && same(before, now)) before = views.pop();
    if (before) plot.view(before);
    back.disabled = !views.length;
  }
  async function fitAll(keepView = true) {
    if (!scene) return;
    if (keepView) leave();
    let [l, r, b, t] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < scene.n; i++) { l = Math.min(l, x[i]); r = Math.max(r, x[i]); b = Math.min(b, y[i]); t = Math.max(t, y[i]); }
    const pad = Math.max(r - l, t - b, 0.1) * 0.03;
    await plot.zoomToArea({ x: l - pad, y: b - pad, width: r - l + 2 * pad, height: t - b + 2 * pad });
    home = viewed();
    lay();
  }

  /* A point grows as the plot's do, when one zooms in. */
  const growth = scaling => Math.asinh(Math.max(1, scaling)) / Math.asinh(1);

  /* Without a graphics card the plot takes a tenth of a second for each picture of many points. While such a map is moved, a loop
     fills the pixels instead, and the plot draws when it rests. */
  let moved = null, asksFrame = 0, settles = 0;
  function startMove() {
    if (moved) return;
    if (!eye) aim();
    if (!eye) return;
    const ratio = window.devicePixelRatio || 1, { width, height } = map.getBoundingClientRect();
    Object.assign(pixels, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const brush = pixels.getContext("2d", { alpha: false, willReadFrequently: true }), image = brush.createImageData(pixels.width, pixels.height);
    over.style.willChange = "transform";  // else its names are drawn again at each step
    moved = { view: viewed(), ratio, width, height, brush, image, inks: look.palette.map(pixelOf) };
  }
  const pixelOf = tint => {
    const part = at => parseInt(tint.slice(at, at + 2), 16);
    return (255 << 24 | part(5) << 16 | part(3) << 8 | part(1)) >>> 0;
  };
  function fillPixels() {
    asksFrame = 0;
    if (!moved) return;
    const { ratio, view, image, inks } = moved, { width, height } = pixels;
    const cells = new Uint32Array(image.data.buffer), grown = growth(view[0]) * ratio;
    const sides = look.sizes.map(size => Math.max(1, Math.round(size * grown)));
    cells.fill(0xFFFFFFFF);
    for (let i = 0; i < scene.n; i++) {
      if (visible && !visible[i]) continue;
      const side = sides[look.weight[i]], left = Math.round((eye.left + eye.unit * x[i]) * ratio - side / 2);
      const top = Math.round((eye.top - eye.unit * y[i]) * ratio - side / 2);
      if (left < 0 || top < 0 || left + side > width || top + side > height) continue;
      const tint = inks[look.category[i]];
      for (let row = top; row < top + side; row++) cells.fill(tint, row * width + left, row * width + left + side);
    }
    moved.brush.putImageData(image, 0, 0);
    pixels.hidden = false;
    carryNames();
    root.pictures++;
  }
  /* Moves the view by pixels of the screen, and scales it about a place there. */
  function move(right, down, factor = 1, [px, py] = [0, 0]) {
    startMove();
    if (!moved) return;
    eye = { unit: eye.unit * factor, left: px + factor * (eye.left - px) + right, top: py + factor * (eye.top - py) + down };
    const { view, width, height } = moved, [a, b] = [(2 * px - width) / height, 1 - 2 * py / height];
    view[0] *= factor;
    view[5] *= factor;
    view[12] = a + factor * (view[12] - a) + 2 * right / height;
    view[13] = b + factor * (view[13] - b) - 2 * down / height;
    asksFrame ||= requestAnimationFrame(fillPixels);
    clearTimeout(settles);
    if (!grabbed) settles = setTimeout(settleMove, RESTS);
  }
  function settleMove() {
    clearTimeout(settles);
    if (!moved) return;
    const { view } = moved;
    moved = null;
    over.style.willChange = "";
    plot.view(view);
    // The plot has drawn by the second picture from here.
    requestAnimationFrame(() => requestAnimationFrame(() => { if (!moved) pixels.hidden = true; }));
  }

  /* Tells whether a box of the screen holds a point, or a mark of the question: by sums over cells that move with the map. */
  function crowd(width, height, view) {
    const [x0, y0] = at(0, 0), [x1, y1] = at(1, 1), mod = v => (v % CELL + CELL) % CELL - CELL;
    const [left, top] = [mod(x0), mod(y0)], cols = Math.ceil((width - left) / CELL) + 1, rows = Math.ceil((height - top) / CELL) + 1;
    const sums = new Float64Array((cols + 1) * (rows + 1));
    const add = (px, py, weight = 1) => {
      const c = Math.floor((px - left) / CELL), r = Math.floor((py - top) / CELL);
      if (c >= 0 && c < cols && r >= 0 && r < rows) sums[(r + 1) * (cols + 1) + c + 1] += weight;
    };
    for (let i = 0; i < scene.n; i++) if (seen(i)) add(x0 + x[i] * (x1 - x0), y0 + y[i] * (y1 - y0));
    const marked = [...(view.evidence ?? []), ...(view.systems ?? []).flatMap(system => system.rows.map(row => row.i))].map(i => at(x[i], y[i]));
    if (view.text) marked.push(at(view.x, view.y));
    for (const [px, py] of marked) for (const dx of [-6, 0, 6]) for (const dy of [-6, 0, 6]) add(px + dx, py + dy, MARK);
    for (let r = 1; r <= rows; r++) for (let c = 1; c <= cols; c++) {
      const i = r * (cols + 1) + c;
      sums[i] += sums[i - 1] + sums[i - cols - 1] - sums[i - cols - 2];
    }
    const half = 1 + dot * growth(plot.get("camera").scaling[0]);
    const cell = (v, start, most) => Math.max(0, Math.min(most, Math.floor((v - start) / CELL)));
    return (l, t, r, b) => {
      const c0 = cell(l - half, left, cols - 1), c1 = cell(r + half, left, cols - 1) + 1, r0 = cell(t - half, top, rows - 1), r1 = cell(b + half, top, rows - 1) + 1;
      return sums[r1 * (cols + 1) + c1] - sums[r0 * (cols + 1) + c1] - sums[r1 * (cols + 1) + c0] + sums[r0 * (cols + 1) + c0];
    };
  }
  let laidAt = null;
  function lay() {
    if (!scene) return;
    over.style.transform = "";
    aim();
    laidAt = [at(-1, 1), at(1, -1)];
    const parts = [], view = answer(), { width, height } = map.getBoundingClientRect();
    if (labelled.checked) {
      const taken = [], leaders = [], points = crowd(width, height, view), lines = [], names = [];
      // The largest first, each in the nearest free place; names that find none wait until one zooms in.
      scene.labels.forEach((label, order) => {
        if (!present.has(label.code)) return;
        const [cx, cy] = at(label.x, label.y), w = label.width ??= wide(label.text) / 2 + 3, h = 8;
        if (cx < 0 || cx > width || cy < 0 || cy > height) return;
        const leader = ([l, t, r, b]) => [cx, cy, Math.max(l, Math.min(r, cx)), Math.max(t, Math.min(b, cy))];
        const free = ([l, t, r, b]) => l > 1 && t > 1 && r < width - 1 && b < height - 1
          && !taken.some(o => l < o[2] && o[0] < r && t < o[3] && o[1] < b);
        let box = around(cx, cy, w, h, FAR).find(box => free(box) && !points(...box)
          && !taken.some(o => crosses(leader(box), o)) && !leaders.some(o => crosses(o, box)));
        // Where a large cluster has no empty place near it, its name covers some of its points.
        if (!box && order < LARGE) {
          let least = MARK;
          for (const tried of around(cx, cy, w, h, NEAR)) {
            const covered = free(tried) && !leaders.some(o => crosses(o, tried)) ? points(...tried) : MARK;
            if (covered < least) [least, box] = [covered, tried];
          }
        }
        if (!box) return;
        const [l, t, r, b] = box, [x1, y1, x2, y2] = leader(box);
        taken.push(box);
        leaders.push([x1, y1, x2, y2]);
        if (Math.hypot(x2 - x1, y2 - y1) > 12) lines.push(draw("line", { x1, y1, x2, y2, stroke: "#555", "stroke-width": 0.7 }),
          draw("circle", { cx, cy, r: 1.8, fill: "#222", stroke: "#fff", "stroke-width": 0.5 }));
        names.push(draw("text", { x: (l + r) / 2, y: (t + b) / 2 + 4, "text-anchor": "middle", "font-size": 11, "font-weight": 700, fill: label.ink,
          stroke: "#fff", "stroke-width": 3, "paint-order": "stroke", class: "name" }, label.text));
      });
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
    if (!scene) return;
    const kind = colour.value, entries = [], after = [];
    if (names) {
      const counts = groups[kind].counts, order = kind === "session" ? [...names.keys()] : [...names.keys()].sort((a, b) => counts[b] - counts[a]);
      const listed = order.filter(code => counts[code]).slice(0, LISTED);
      if (typeof kept[kind] === "number" && !listed.includes(kept[kind])) listed.push(kept[kind]);
      for (const code of listed) {
        const dot = make("i", { className: "dot" }), alone = kept[kind] === code;
        dot.style.background = palette[code] ?? NONE;
        const told = kind === "cluster" && scene.labels.find(label => label.code === code)?.sentence;
        const title = [told, alone ? "show all" : "show these alone"].filter(Boolean).join("\n");
        const what = make("span", { className: "what", textContent: code < 0 ? `in no ${kind}` : names[code] });
        const entry = make("button", { className: "entry", title }, dot, what, ` (${counts[code] ?? groups[kind].none})`);
        entry.dataset.code = code;
        entry.setAttribute("aria-pressed", alone);
        entry.addEventListener("click", () => keep(kind, alone ? null : code));
        entries.push(entry);
      }
      const more = order.filter(code => counts[code]).length - LISTED;
      if (more > 0) after.push(make("span", { textContent: `… and ${more} more ${kind}s` }));
    } else {
      const words = kind === "time" ? ["earlier", "later"] : ["lower", "higher"];
      [RAMP[0], RAMP[5]].forEach((tint, end) => {
        const dot = make("i", { className: "dot" });
        dot.style.background = tint;
        after.push(make("span", {}, dot, words[end]));
      });
      if (kind === "score" && answer().scored) after.push(make("span", { textContent: `of the first ${answer().scored} turns` }));
    }
    const [first, second] = model.get("systems");
    const marks = ["✚ the question", "● returned, evidence", "□ returned, not evidence", "★ evidence",
      `☆ evidence that ${second ? first : "was"} missed (dashed)`];
    if (second) marks.push(`△ returned by ${second} (black: evidence)`);
    key.replaceChildren(...marks.map(text => make("span", { textContent: text })), ...entries, ...after);
  }
  const who = i => groups.speaker ? groups.speaker.names[groups.speaker.values[i]] ?? "" : "";
  const about = i => make("td", { className: "about" }, who(i), make("small", { textContent: times ? date(times[i]) : "" }));
  function list() {
    const view = answer(), chosen = new Set(pickedRows());
    const cell = (text, className = "") => make("td", { textContent: text, className });
    const words = (text, note) => make("td", {}, text, make("small", { textContent: note }));
    const table = make("table"), head = make("tr");
    head.append(...["", "who, when", "its best-matching sentence, and the question's words in it", "cosine"].map(text => make("th", { textContent: text })));
    const add = (i, ...cells) => {
      const line = make("tr", {}, ...cells);
      line.dataset.i = i;
      line.classList.toggle("chosen", chosen.has(i));
      table.append(line);
    };
    for (const system of view.systems ?? []) {
      const hits = system.rows.filter(row => row.hit).length;
      const title = make("th", { colSpan: 4, textContent: view.evidence.length
        ? `${system.name}: ${hits} of ${view.evidence.length} evidence items in the first ${system.rows.length}` : system.name });
      table.append(make("tr", {}, title), head.cloneNode(true));
      for (const row of system.rows) add(row.i, cell(`${row.hit ? "●" : "□"} ${row.rank}`), about(row.i), words(row.text, row.words.join(", ")), cell(row.cosine.toFixed(2), "num"));
      for (const row of system.missed) add(row.i, cell("☆"), about(row.i), words(row.text, row.rank ? `missed: rank ${row.rank}` : "missed: not ranked"), cell(row.cosine.toFixed(2), "num"));
    }
    side.replaceChildren(chosenTable, table);
  }
  /* The picked turns, above the answer; their texts come from who has them. */
  const chosenTable = make("table", { className: "chosen-turns" });
  function listPicked(texts = new Map()) {
    const rows = pickedRows();
    chosenTable.replaceChildren();
    if (!rows.length || !scene) return;
    const cut = rows.length > PICKED ? `, the first ${PICKED}` : "";
    chosenTable.append(make("tr", {}, make("th", { colSpan: 2, textContent: `picked: ${rows.length}${cut}` })));
    for (const i of rows.slice(0, PICKED)) {
      const line = make("tr", { className: "chosen" }, about(i), make("td", { textContent: texts.get(i) ?? "…" }));
      line.dataset.i = i;
      chosenTable.append(line);
    }
    if (!texts.size) model.send({ kind: "texts", rows: rows.slice(0, PICKED) });
  }
  const choose = () => { known.value = model.get("question"); if (known.selectedIndex < 0) known.value = ""; };
  function show() {
    const view = answer();
    if (view.text !== undefined && document.activeElement !== ask) ask.value = view.text;
    working();
    choose();
    list();
    keys(...shown);
    if (!waiting()) root.dataset.ms = (performance.now() - asked).toFixed(0);
    if (colour.value === "score" || sized.checked) paint();
    else if (own.checked) sift();
    else lay();
  }
  function newScene() {
    const before = scene?.scope;
    scene = { ...model.get("_scene") };
    if (!scene.n) return;
    [x, y, times] = [floats(scene.x, Float32Array), floats(scene.y, Float32Array), floats(scene.times, Float64Array)];
    dated = Boolean(times && scene.dated);
    const outer = values => values.reduce(([low, high], v, i) => [v < values[low] ? i : low, v > values[high] ? i : high], [0, 0]);
    const [across, up] = [outer(x), outer(y)];
    along = x[across[1]] - x[across[0]] >= y[up[1]] - y[up[0]] ? 0 : 1;
    ends = along ? up : across;
    for (const kind of Object.keys(groups)) delete groups[kind];
    for (const [kind, group] of Object.entries(scene.colours)) {
      const values = floats(group.codes, Int32Array), counts = new Array(group.names.length).fill(0);
      let none = 0;
      for (const code of values) if (code < 0) none++; else counts[code]++;
      groups[kind] = { values, counts, none, names: group.names, tints: group.tints };
    }
    if (scene.scope !== before) [kept, found, shownSince, views.length, find.value, since.value] = [{}, null, -Infinity, 0, "", 0];
    else delete kept.cluster;
    sinceDay.textContent = date(shownSince);
    back.disabled = !views.length;
    const sizes = (kind, least) => groups[kind].counts.map((n, code) => [String(code), `${groups[kind].names[code]} (${n})`, n])
      .filter(([, , n]) => n).sort((a, b) => b[2] - a[2]).concat(groups[kind].none ? [["-1", `in no ${kind} (${groups[kind].none})`]] : []);
    fill(scopes, scene.scopes.map(name => [name, name]));
    scopes.value = scene.scope;
    fill(known, [["", "pick a question…"], ...scene.questions]);
    fill(speaker, [["", "all"], ...sizes("speaker")]);
    fill(cluster, [["", "all"], ...sizes("cluster")]);
    speaker.value = String(kept.speaker ?? "");
    fill(colour, [...Object.keys(scene.colours), ...(times ? ["time"] : []), "score"].map(name => [name, name]));
    for (const slider of [time, since]) slider.disabled = !dated;
    settle();
    paint().then(() => scene.scope === before ? null : fitAll(false)).then(show);
  }
  const push = (name, value) => { model.set(name, value); model.save_changes(); };
  /* Asks for an answer: until it is there a sign says so, and nothing of the question before is shown. */
  const answered = (change = () => {}) => {
    asked = performance.now();
    answering = nextRequest();
    change();
    model.set("_request", request);
    model.save_changes();
    show();
  };
  const askFor = (name, value) => answered(() => model.set(name, value));
  /* Asks for something else that takes a while: the answer stays. */
  const order = content => {
    asked = performance.now();
    model.send({ ...content, request: nextRequest() });
    working();
  };
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
    const lit = new Set(rows);
    for (const row of side.querySelectorAll("table:not(.chosen-turns) tr[data-i]")) row.classList.toggle("chosen", lit.has(+row.dataset.i));
    listPicked();
    count.textContent = rows.length ? `${rows.length} picked` : "nothing picked";
    for (const button of [search, save]) button.disabled = !rows.length;
  };
  const pickedRows = () => [...model.get("_picked")];

  // JupyterLab would select cells from here on, and take every move of the mouse that the lasso needs.
  map.addEventListener("mousedown", e => { if (e.shiftKey) e.stopPropagation(); });
  // Names are placed anew at each step, or once the map rests where there are too many points to ask; until then they move along.
  let rests = 0, laid = null;
  function carryNames() {
    const corner = at(-1, 1), other = at(1, -1);
    if (!rests) laid = [...(laidAt ?? [corner, other])];
    const zoom = (other[0] - corner[0]) / (laid[1][0] - laid[0][0]);
    over.style.transformOrigin = "0 0";
    over.style.transform = `matrix(${zoom}, 0, 0, ${zoom}, ${corner[0] - zoom * laid[0][0]}, ${corner[1] - zoom * laid[0][1]})`;
    clearTimeout(rests);
    rests = moved ? -1 : setTimeout(() => { rests = 0; lay(); }, 150);
  }
  plot.subscribe("view", () => {
    if (!scene || scene.n <= MANY) return lay();
    if (moved) return;
    aim();
    carryNames();
  });
  root.pictures = 0;  // for a test that measures frames
  plot.subscribe("draw", () => { root.pictures++; });
  const movesFast = e => scene?.n > MANY && plot.get("isPointsDrawn") && !e.shiftKey && !e.altKey && plot.get("mouseMode") === "panZoom";
  canvas.addEventListener("mousedown", e => { if (e.button === 0 && movesFast(e)) grabbed = [e.clientX, e.clientY]; });
  map.addEventListener("wheel", e => {
    if (!movesFast(e)) return;
    e.preventDefault();
    e.stopPropagation();
    const box = map.getBoundingClientRect(), lines = e.deltaMode === 1 ? 12 : 1;
    move(0, 0, Math.exp(-lines * (e.deltaY || e.deltaX) / box.height), [e.clientX - box.left, e.clientY - box.top]);
  }, { capture: true, passive: false });
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
  map.addEventListener("mousedown", leave, true);
  map.addEventListener("wheel", e => { if (e.timeStamp - turned > 600) leave(); turned = e.timeStamp; }, { capture: true, passive: true });
  ask.addEventListener("keydown", e => { e.stopPropagation(); if (e.key === "Enter") askFor("question", ask.value); });
  find.addEventListener("keydown", e => {
    e.stopPropagation();
    if (e.key !== "Enter") return;
    wanted = find.value.trim();
    if (wanted) order({ kind: "find", words: wanted });
    else { found = null; sift(); }
  });
  for (const field of [golden, goldenAnswer, k, ...systems]) field.addEventListener("keydown", e => e.stopPropagation());
  known.addEventListener("change", () => { ask.blur(); askFor("question", known.value); });
  scopes.addEventListener("change", () => askFor("scope", scopes.value));
  for (const field of systems) field.addEventListener("change", () => askFor("systems", systems.map(s => s.value.trim()).filter(Boolean)));
  k.addEventListener("change", () => askFor("k", Math.max(1, parseInt(k.value) || 10)));
  colour.addEventListener("change", () => push("colour", colour.value));
  sized.addEventListener("change", paint);
  labelled.addEventListener("change", lay);
  time.addEventListener("input", slide);
  since.addEventListener("input", slideSince);
  own.addEventListener("change", () => sift());
  speaker.addEventListener("change", () => keep("speaker", speaker.value === "" ? null : +speaker.value));
  cluster.addEventListener("change", () => keep("cluster", cluster.value === "" ? null : +cluster.value));
  fit.addEventListener("click", () => fitAll());
  back.addEventListener("click", goBack);
  whole.addEventListener("click", () => document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
  root.addEventListener("fullscreenchange", () => { whole.textContent = document.fullscreenElement ? "leave full screen" : "full screen"; });
  side.addEventListener("mouseover", e => { const row = e.target.closest("tr[data-i]"); if (row && +row.dataset.i !== over_i) hover(+row.dataset.i); });
  side.addEventListener("mouseleave", () => hover(-1));
  side.addEventListener("click", e => { const row = e.target.closest("tr[data-i]"); if (!row) return;
    const i = +row.dataset.i, rows = pickedRows();
    leave();
    plot.zoomToPoints([i], { padding: 3, transition: true });
    const next = e.shiftKey ? rows.includes(i) ? rows.filter(other => other !== i) : [...rows, i] : [i];
    plot.select(next, { preventEvent: true });
    pick(next); });
  lasso.addEventListener("click", () => { const on = plot.get("mouseMode") !== "lasso"; plot.set({ mouseMode: on ? "lasso" : "panZoom" }); lasso.style.background = on ? "#cfe5f3" : ""; });
  again.addEventListener("click", () => order({ kind: "cluster" }));
  search.addEventListener("click", () => { order({ kind: "search" }); answering = request; show(); });
  save.addEventListener("click", () => model.send({ kind: "save", question: golden.value, answer: goldenAnswer.value }));

  /* The questions that a model proposed: each with its words and answer to mend, and its buttons. */
  function listProposals() {
    const { told: counted = "", rows = [] } = model.get("_proposals") ?? {};
    review.hidden = !rows.length;
    reviewed.textContent = counted;
    proposals.replaceChildren(...rows.map(proposalLine));
  }
  function proposalLine(row) {
    const send = (action, more = {}) => order({ kind: "proposal", action, query_id: row.id, ...more });
    const field = (value, title, size) => {
      const input = make("input", { type: "text", value, title, size });
      input.addEventListener("keydown", e => e.stopPropagation());
      return input;
    };
    const question = field(row.question, "the question", 52), answer = field(row.answer, "its answer", 18);
    const button = (text, title, act) => {
      const made = make("button", { textContent: text, title });
      made.dataset.action = text;
      made.addEventListener("click", () => act(made));
      return made;
    };
    const show = button("show", "ask it, and pick its evidence", () => send("show"));
    const accept = button("accept", "it is right as it is", () => send("accept"));
    const mend = button("mend", "accept it in these words", () => send("mend", { question: question.value, answer: answer.value }));
    const evidence = button("evidence", "accept it with the picked turns as its evidence", () => send("evidence"));
    // A line that is dropped is gone: the second click does it.
    const drop = button("drop", "remove it from the file", made => {
      if (made.dataset.sure) return send("drop");
      made.dataset.sure = "1";
      made.textContent = "drop it?";
    });
    accept.disabled = row.source === "accepted";
    const missing = row.evidence.filter(([i]) => i === null).length;
    const why = row.evidence.map(([, reason]) => reason).filter(Boolean).join(" · ");
    const counts = `${row.evidence.length} evidence${missing ? ` (${missing} not there)` : ""}, ${row.distractors.length} distractors`;
    const line = make("tr", { className: row.source },
      make("td", {}, row.source, make("small", { textContent: row.type })),
      make("td", {}, question, answer, make("small", { textContent: why, title: why }), make("small", { textContent: counts })),
      make("td", { className: "buttons" }, show, accept, mend, evidence, drop));
    line.dataset.id = row.id;
    for (const control of line.querySelectorAll("input, button")) control.dataset.lmSuppressShortcuts = "";
    return line;
  }

  const heard = content => {
    if (content.kind === "text" && content.i === over_i) {
      tip.replaceChildren(make("b", { textContent: content.head }), content.text);
      tip.hidden = false;
      root.dataset.ms = (performance.now() - asked).toFixed(0);
    } else if (content.kind === "texts") {
      listPicked(new Map(content.rows));
    } else if (content.kind === "found" && content.words === wanted) {
      found = new Set(content.rows);
      sift();
    } else if (content.kind === "saved") {
      told.textContent = `saved as ${content.told}`;
    }
  };
  const follow = {
    "change:_scene": newScene, "change:_view": show,
    "change:question": show,
    "change:_answered": show,
    "change:_proposals": listProposals,
    "change:colour": () => { settle(); paint(); },
    "change:until": () => { if (scene) { settle(); sift(); } },
    "change:_picked": () => { const rows = pickedRows(); chosen(rows); plot.select(rows, { preventEvent: true }); },
    "change:problem": () => { problem.textContent = model.get("problem"); },
    "change:systems": () => { systems.forEach((s, i) => { s.value = model.get("systems")[i] ?? ""; }); },
    "change:k": () => { k.value = model.get("k"); },
    "msg:custom": heard,
  };
  for (const [event, f] of Object.entries(follow)) model.on(event, f);
  for (const event of ["problem", "systems", "k"]) follow[`change:${event}`]();
  const watcher = new ResizeObserver(async () => { const { width, height } = map.getBoundingClientRect(); if (!width) return;
    settleMove();
    const wasHome = !home || same(home, viewed());
    // What is fitted before the plot has its size would be fitted to the size before.
    await plot.set({ width, height });
    // A view of everything stays one whatever the size.
    if (wasHome && scene?.n && home) fitAll(false);
    else plot.view(viewed());
    lay(); });
  watcher.observe(map);
  newScene();
  listProposals();
  chosen(pickedRows());
  root.plot = plot;  // for a test that measures frames
  return () => { watcher.disconnect(); window.removeEventListener("mousemove", drag, true); window.removeEventListener("mouseup", drop, true);
    window.removeEventListener("blur", drop); for (const [event, f] of Object.entries(follow)) model.off(event, f); plot.destroy(); };
}
export default { render };
