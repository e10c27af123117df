// A trace too large to be sent at once: an outline of all its steps, and parts that come when they are asked for.

import { unpack } from "./dom.js";
import { scaleOf } from "./norms.js";

const CHUNK = 200;

/** What makes the steps and pictures of a large trace; frames know little until their chunk has come. */
export async function openLarge(model, signal) {
  const outline = await unpack(model.get("outline"));
  const frames = outline.kind.map((kind, i) => ({
    kind,
    glyph: outline.glyph[i],
    picture: outline.picture[i],
    norm: outline.norm[i],
    hook: outline.hook[i] < 0 ? null : outline.hook[i],
    title: "",
    on: [],
    near: [],
    texts: {},
  }));
  for (const [step, question] of Object.entries(outline.asks)) frames[step].ask = question;
  const part = makeParts(model, signal);
  const tell = async (step) => {
    const first = Math.floor(step / CHUNK) * CHUNK;
    const told = await part(`chunk${first / CHUNK}`);
    told?.forEach((words, i) => Object.assign(frames[first + i], words));
    return Boolean(told);
  };
  const isTold = (step) => Boolean(frames[step].title);
  const { tops, overview } = outline;
  return { frames, firings: model.get("firings"), notes: [], label: "", beside: null, scale: scaleOf(frames), tops, overview, part, tell, isTold };
}

/** The picture of a view: its own, one that was sent with the player, or one that many views share, filled in. */
export async function svgOf({ svg }, svgs, part) {
  if (typeof svg === "number") return svgs[svg];
  if (typeof svg === "string") return svg;
  const pieces = svg.pieces ?? (await part(svg.like))?.svg.pieces;
  return pieces?.map((piece) => (typeof piece === "number" ? svg.fill[piece] : piece)).join("");
}

/** Gives a part by its name: one that was sent, or one that the kernel is asked for; null if neither. */
function makeParts(model, signal) {
  const come = new Map();
  const waiting = new Map();
  const hear = ({ part, packed }) => waiting.get(part)?.(packed ? unpack(packed) : null);
  model.on("msg:custom", hear);
  signal.addEventListener("abort", () => model.off("msg:custom", hear));
  const ask = (name) => new Promise((done) => {
    waiting.set(name, done);
    // A kernel that has gone answers nothing, or there is no way to it any more; a page never had one.
    setTimeout(() => done(null), 5000);
    try { model.send({ part: name }); } catch { done(null); }
  });
  return (name) => {
    const sent = model.get("parts")[name];
    if (!come.has(name)) come.set(name, sent ? unpack(sent) : ask(name).then((got) => got ?? (come.delete(name), null)));
    return come.get(name);
  };
}
