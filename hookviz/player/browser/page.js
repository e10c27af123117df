// The player without a kernel: a model that only remembers, and its place in a page.

import { unpack } from "./compression.js";
import { makeElement } from "./dom.js";
import { livePlayers, render } from "./widget.js";

/** @import { PageState } from "./payload" */
/** @import { Model } from "./types" */

/**
 * What anywidget hands to render, as far as the player asks for it.
 * @param {PageState} state
 * @returns {Model}
 */
function makeModel(state) {
  /** @type {Map<string, Set<() => void>>} */
  const listenersByEvent = new Map();
  /** @param {string} event */
  const listeners = (event) => {
    const known = listenersByEvent.get(event) ?? new Set();
    listenersByEvent.set(event, known);
    return known;
  };
  return {
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      for (const act of [...listeners(`change:${name}`)]) act();
    },
    on: (event, act) => listeners(event).add(act),
    off: (event, act) => listeners(event).delete(act),
    save_changes: () => {},
  };
}

/**
 * The pictures are in the page already, for where no script runs: drawn, or packed into an image.
 * @param {Element} shown
 */
function svgMarkup(shown) {
  if (!(shown instanceof HTMLImageElement)) return shown.outerHTML;
  const bytes = Uint8Array.from(atob(shown.src.split(",")[1]), (byte) => byte.charCodeAt(0));
  // How an image gets dark would hold for every drawing of the page; the player does so by itself.
  return new TextDecoder().decode(bytes).replace(/<style>.*?<\/style>/, "");
}

/**
 * Whether nothing has the keyboard, or is about to get it: the browser gives it to an autofocus only when it first
 * draws the page. In a frame one cannot know: a field of the page around may have it.
 */
function isKeyboardFree() {
  if (globalThis.top !== globalThis.self || document.querySelector("[autofocus]")) return false;
  const holder = document.activeElement;
  return holder === null || holder === document.body || holder === document.documentElement;
}

/**
 * When the player shows its first picture, which may have to be unpacked before; what it throws meanwhile rejects.
 * @param {Element} live
 * @returns {Promise<void>}
 */
function whenDrawn(live) {
  return new Promise((resolve, reject) => {
    if (live.querySelector(".hv-picture")) resolve();
    live.addEventListener("hv-drawn", () => resolve(), { once: true });
    live.addEventListener("hv-failed", (event) => reject(/** @type {CustomEvent} */ (event).detail), { once: true });
  });
}

/**
 * The still picture stays until the player shows its own, and if that fails, below a sentence that says so.
 * @param {Element} still
 */
async function replaceStaticPicture(still) {
  const root = still.parentElement;
  const data = /** @type {HTMLElement | null} */ (root?.querySelector(".hv-state"));
  if (!root || !data) return;
  handOverToLivePlayer(root);
  // Jupyter dresses the tables, code and pictures in such an output for reading; the player dresses its own.
  const jupyterClasses = root.closest(".jp-RenderedHTMLCommon")?.classList;
  jupyterClasses?.remove("jp-RenderedHTMLCommon");
  // At once, before another output's script looks for what does not play yet.
  root.classList.add("hv-starts");
  const live = makeElement("div", "hv-live");
  try {
    await startPlayer(still, live, await unpack(data.textContent ?? ""));
  } catch (error) {
    live.remove();
    jupyterClasses?.add("jp-RenderedHTMLCommon");
    const sentence = (data.dataset.failed ?? "").replace("{why}", () => String(error));
    still.before(makeElement("p", "hv-failed", sentence, { role: "alert" }));
    console.error(error);
    return;
  }
  root.classList.add("hv-plays");
  const player = live.firstElementChild;
  // In a page of its own the keys are the player's from the start, unless somebody types elsewhere by now.
  if (root.matches("main") && isKeyboardFree() && player instanceof HTMLElement) player.focus({ preventScroll: true });
}

/**
 * Where a kernel has a living player for this place, that takes it.
 * @param {Element} root
 */
function handOverToLivePlayer(root) {
  const place = /** @type {HTMLElement | null} */ (root.closest("[data-twin]"));
  if (place) livePlayers().get(place.dataset.twin ?? "")?.(place);
}

/**
 * Until it plays, the player has its place and size, but is not seen.
 * @param {Element} still
 * @param {HTMLElement} live
 * @param {PageState} state
 */
function startPlayer(still, live, state) {
  if (!state.content.svgs.length) state.content.svgs = [...still.querySelectorAll("svg, img")].map(svgMarkup);
  still.before(live);
  const ready = whenDrawn(live);
  render({ model: makeModel(state), el: live });
  return ready;
}

// Not by the place of this script: some notebooks take scripts out of an output and run them elsewhere.
document.querySelectorAll(":not(.hv-starts) > .hv-still:has(~ .hv-state)").forEach(replaceStaticPicture);
