// What Python sent, ready to be shown: runs with their steps, and parts that are fetched when they are needed.

import { unpack } from "./compression.js";
import { Language } from "./language.js";

/** @import { Content, Outline, Part, PartReply, RunContent, StepsPart, View } from "./payload" */
/** @import { Model, OpenContent, OpenRun, Step } from "./types" */

/** How long to wait for the kernel: one that has gone answers nothing. */
const PATIENCE = 5000;

/**
 * Reads the content of a model.
 * @param {Model} model
 * @param {AbortSignal} signal
 * @returns {Promise<OpenContent>}
 */
export async function openContent(model, signal) {
  const content = model.get("content");
  const language = new Language(content.words);
  // Those that were sent unpacked are read before anybody asks for them.
  for (const sent of Object.values(content.parts)) if (typeof sent !== "string") language.add(sent.words);
  const part = makeParts(model, language, signal);
  const runs = await Promise.all(content.runs.map((run) => openRun(run, content, part)));
  return { content, language, runs, part };
}

/**
 * @param {RunContent} run
 * @param {Content} content
 * @param {OpenContent["part"]} part
 * @returns {Promise<OpenRun>}
 */
async function openRun(run, content, part) {
  const outline = typeof run.outline === "string" ? /** @type {Outline} */ (await unpack(run.outline)) : run.outline;
  const steps = stepsOf(outline);
  const { chunk } = content;
  /** @param {number} step */
  const chunkOf = (step) => Math.floor((run.told?.[step] ?? step) / chunk);
  /**
   * @param {number} number
   * @param {StepsPart} words
   */
  const fillIn = (number, { steps: words }) => steps.forEach((step, i) => {
    if (chunkOf(i) === number) step.words = words[(run.told?.[i] ?? i) - number * chunk];
  });
  /** @param {number} step */
  const fetchWords = async (step) => {
    const words = /** @type {StepsPart | null} */ (await part(`steps${chunkOf(step)}`));
    if (words) fillIn(chunkOf(step), words);
    return Boolean(words);
  };
  for (let number = 0; `steps${number}` in content.parts; number += 1) {
    const sent = content.parts[`steps${number}`];
    if (typeof sent !== "string") fillIn(number, /** @type {StepsPart} */ (sent));
  }
  const { label, notes, firings } = run;
  return { label, notes, firings, steps, views: outline.views, overview: outline.overview, fetchWords };
}

/**
 * @param {Outline} outline
 * @returns {Step[]}
 */
function stepsOf(outline) {
  return outline.kind.map((kind, i) => ({
    kind,
    glyph: outline.glyph[i],
    picture: outline.picture[i],
    norm: outline.norm[i],
    hook: outline.hook[i] < 0 ? null : outline.hook[i],
    question: outline.questions[i] ?? null,
    words: null,
  }));
}

/**
 * Gives a part by its name: one that was sent, or one that the kernel is asked for; null if neither.
 * @param {Model} model
 * @param {Language} language
 * @param {AbortSignal} signal
 * @returns {OpenContent["part"]}
 */
function makeParts(model, language, signal) {
  /** @type {Map<string, Promise<Part | null>>} */
  const fetched = new Map();
  /** @type {Map<string, (packed: string | null) => void>} */
  const waiting = new Map();
  /** @param {PartReply} reply */
  const hear = (reply) => waiting.get(reply.part)?.(reply.packed);
  model.on("msg:custom", hear);
  signal.addEventListener("abort", () => model.off("msg:custom", hear));
  /**
   * @param {string} name
   * @returns {Promise<string | null>}
   */
  const ask = (name) => new Promise((resolve) => {
    waiting.set(name, resolve);
    setTimeout(() => resolve(null), PATIENCE);
    try {
      if (model.send) model.send({ part: name });
      else resolve(null);
    } catch {
      resolve(null); // there is no way to the kernel any more
    }
  });
  /** @param {string} name */
  const fetch = async (name) => {
    const sent = model.get("content").parts[name] ?? (await ask(name));
    const part = typeof sent === "string" ? /** @type {Part} */ (await unpack(sent)) : sent;
    if (part) language.add(part.words);
    else fetched.delete(name); // the kernel may be there the next time
    return part;
  };
  return (name) => {
    const known = fetched.get(name) ?? fetch(name);
    fetched.set(name, known);
    return known;
  };
}

/**
 * The SVG of a view: its own, one that was sent from the start, or one that several views share, filled in.
 * @param {Pick<View, "svg">} view
 * @param {string[]} svgs
 * @param {OpenContent["part"]} part
 * @returns {Promise<string | undefined>}
 */
export async function svgOf({ svg }, svgs, part) {
  if (typeof svg === "number") return svgs[svg];
  if (typeof svg === "string") return svg;
  const pieces = svg.pieces ?? (await sharedPieces(svg.like, part));
  return pieces?.map((piece) => (typeof piece === "number" ? svg.fill[piece] : piece)).join("");
}

/**
 * @param {string | undefined} name
 * @param {OpenContent["part"]} part
 */
async function sharedPieces(name, part) {
  const view = name === undefined ? null : /** @type {View | null} */ (await part(name));
  return typeof view?.svg === "object" ? view.svg.pieces : undefined;
}
