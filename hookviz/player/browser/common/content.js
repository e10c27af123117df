// Loads the content that Python sent: runs with their steps, and chunks that are fetched when they are needed.

import { unpack } from "./compression.js";
import { sayWith } from "./labels.js";

/** @import { Content, Overview, Chunk, ChunkReply, RunContent, StepsChunk, View } from "./payload" */
/** @import { Model, LoadedContent, LoadedRun, Step } from "./types" */

/** How long to wait for a reply of the kernel, in milliseconds: a dead kernel never replies. */
const KERNEL_TIMEOUT = 5000;

/**
 * Loads the content of a model.
 * @param {Model} model
 * @param {AbortSignal} signal
 * @returns {Promise<LoadedContent>}
 */
export async function loadContent(model, signal) {
  const content = model.get("content");
  const fetchChunk = makeChunkFetcher(model, signal);
  const runs = await Promise.all(content.runs.map((run) => loadRun(run, content, fetchChunk)));
  return { content, say: sayWith(content.labels), runs, fetchChunk };
}

/**
 * @param {RunContent} run
 * @param {Content} content
 * @param {LoadedContent["fetchChunk"]} fetchChunk
 * @returns {Promise<LoadedRun>}
 */
async function loadRun(run, content, fetchChunk) {
  const overview = typeof run.overview === "string" ? /** @type {Overview} */ (await unpack(run.overview)) : run.overview;
  const steps = readSteps(overview, content.questions ?? [], new Set(run.changing));
  const { chunk_size: chunkSize } = content;
  /** @param {number} step */
  const chunkOf = (step) => Math.floor((run.word_indices?.[step] ?? step) / chunkSize);
  /**
   * @param {number} number
   * @param {StepsChunk} words
   */
  const fillIn = (number, { steps: words }) => steps.forEach((step, i) => {
    if (chunkOf(i) === number) step.words = words[(run.word_indices?.[i] ?? i) - number * chunkSize];
  });
  /** @param {number} step */
  const fetchWords = async (step) => {
    const words = /** @type {StepsChunk | null} */ (await fetchChunk(`steps${chunkOf(step)}`));
    if (words) fillIn(chunkOf(step), words);
    return Boolean(words);
  };
  for (let number = 0; `steps${number}` in content.chunks; number += 1) {
    const sent = content.chunks[`steps${number}`];
    if (typeof sent !== "string") fillIn(number, /** @type {StepsChunk} */ (sent));
  }
  const { label, notes, firings, silent, summary } = run;
  const { views, pass_numbers: passNumbers, losses } = overview;
  return { label, notes, firings, silent, summary, steps, views, passNumbers, losses, fetchWords };
}

/**
 * @param {Overview} overview
 * @param {Content["questions"]} questions
 * @param {Set<number>} changing the steps in which a hook changed something
 * @returns {Step[]}
 */
function readSteps(overview, questions, changing) {
  return overview.kind.map((kind, i) => ({
    kind,
    glyph: overview.glyph[i],
    sign: overview.glyph[i] === "hook" ? signOf(kind, changing.has(i)) : null,
    view: overview.view[i],
    norm: overview.norm[i],
    hook: overview.hook[i] < 0 ? null : overview.hook[i],
    questions: (overview.questions[i] ?? []).map((key) => ({ ...questions[key], key })),
    words: null,
  }));
}

/**
 * Returns what a hook did; one that is switched off did not fire.
 * @param {string} kind
 * @param {boolean} isChanging
 */
function signOf(kind, isChanging) {
  if (kind === "absent") return "silent";
  return isChanging ? "changed" : "looked";
}

/**
 * Makes the function that fetches a chunk: from the content, or else from the kernel; null if neither has it.
 * @param {Model} model
 * @param {AbortSignal} signal
 * @returns {LoadedContent["fetchChunk"]}
 */
function makeChunkFetcher(model, signal) {
  /** @type {Map<string, Promise<Chunk | null>>} */
  const fetched = new Map();
  /** @type {Map<string, (packed: string | null) => void>} */
  const waiting = new Map();
  /** @param {ChunkReply} reply */
  const receive = (reply) => waiting.get(reply.chunk)?.(reply.packed);
  model.on("msg:custom", receive);
  signal.addEventListener("abort", () => model.off("msg:custom", receive));
  /**
   * @param {string} name
   * @returns {Promise<string | null>}
   */
  const request = (name) => new Promise((resolve) => {
    waiting.set(name, resolve);
    setTimeout(() => resolve(null), KERNEL_TIMEOUT);
    try {
      if (model.send) model.send({ chunk: name });
      else resolve(null);
    } catch {
      resolve(null); // the connection to the kernel is closed
    }
  });
  /** @param {string} name */
  const fetchOnce = async (name) => {
    const sent = model.get("content").chunks[name] ?? (await request(name));
    const chunk = typeof sent === "string" ? /** @type {Chunk} */ (await unpack(sent)) : sent;
    if (!chunk) fetched.delete(name); // try again next time: the kernel may be back
    return chunk;
  };
  return (name) => {
    const chunk = fetched.get(name) ?? fetchOnce(name);
    fetched.set(name, chunk);
    return chunk;
  };
}

/**
 * Returns the SVG of a view: one that was sent first, or a filled template.
 * @param {Pick<View, "svg">} view
 * @param {string[]} svgs
 * @param {LoadedContent["fetchChunk"]} fetchChunk
 * @returns {Promise<string | undefined>}
 */
export async function loadSvg({ svg }, svgs, fetchChunk) {
  if (typeof svg === "number") return svgs[svg];
  const pieces = svg.pieces ?? (await fetchSharedPieces(svg.like, fetchChunk));
  return pieces?.map((piece) => (typeof piece === "number" ? svg.fill[piece] : piece)).join("");
}

/**
 * @param {string | undefined} name
 * @param {LoadedContent["fetchChunk"]} fetchChunk
 */
async function fetchSharedPieces(name, fetchChunk) {
  const view = name === undefined ? null : /** @type {View | null} */ (await fetchChunk(name));
  return typeof view?.svg === "object" ? view.svg.pieces : undefined;
}
