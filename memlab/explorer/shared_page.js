/* A shared page: what a kernel would answer stands in the page itself, packed, and is unpacked as it is needed. */
async function unpack(id) {
  const node = document.getElementById(id), text = atob(node.textContent.trim()), bytes = new Uint8Array(text.length);
  node.remove();
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
const numbers = text => {
  if (!text) return null;
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new DataView(bytes.buffer);
};
/* Stands for the widget's model: the same names, and answers from the page. */
function storedModel(packed, texts) {
  const heard = {};
  const { views, ...state } = packed;
  const scene = state._scene;
  for (const name of ["x", "y", "times"]) scene[name] = numbers(scene[name]);
  for (const group of Object.values(scene.colours)) group.codes = numbers(group.codes);
  Object.assign(state, { _still: true, _picked: [], _request: 0, _answered: 0, problem: "", until: null });
  const emit = (event, ...values) => { for (const f of heard[event] ?? []) f(...values); };
  const speakers = scene.colours.speaker, sessions = scene.colours.session;
  const codes = [speakers, sessions].map(group => new Int32Array(group.codes.buffer));
  const times = scene.times && new Float64Array(scene.times.buffer);
  const head = i => [speakers.names[codes[0][i]], times ? stamp(times[i]) : "", sessions.names[codes[1][i]]].filter(Boolean).join(" · ");
  const change = (name, value) => {
    state[name] = value;
    if (name === "question") {
      state._view = views[value] ? { ...views[value], asked: value } : {};
      emit("change:_view");
    }
    emit(`change:${name}`);
  };
  const answers = {
    text: async ({ i }) => ({ kind: "text", i, head: head(i), text: (await texts())[i] }),
    texts: async ({ rows }) => { const all = await texts(); return { kind: "texts", rows: rows.map(i => [i, all[i]]) }; },
    find: async ({ words }) => {
      const small = lowered ??= (await texts()).map(text => text.toLowerCase()), asked = words.toLowerCase().split(/\s+/);
      return { kind: "found", words, rows: [...small.keys()].filter(i => asked.every(word => small[i].includes(word))) };
    },
  };
  let lowered = null;
  return {
    get: name => state[name],
    set: (name, value) => change(name, value),
    save_changes: () => { if (state._answered !== state._request) change("_answered", state._request); },
    send: async content => {
      const reply = await answers[content.kind]?.(content);
      if (reply) emit("msg:custom", reply);
      if (content.request) { change("_answered", content.request); }
    },
    on: (event, f) => { (heard[event] ??= []).push(f); },
    off: (event, f) => { heard[event] = (heard[event] ?? []).filter(other => other !== f); },
  };
}
const packed = await unpack("memlab-map");
let unpacked = null;
const texts = () => unpacked ??= unpack("memlab-texts");
render({ model: storedModel(packed, texts), el: document.getElementById("map") });
// After the first picture, so that it does not wait for them.
setTimeout(texts, 1500);
