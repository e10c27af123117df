// The player in a page without a kernel: it replaces the static picture, and has a model of its own.

import { unpack } from "../common/compression.js";
import { makeElement } from "../common/dom.js";
import { changeLanguage, tagOf } from "./language_switch.js";
import { dropNotebookStyles, measureOutputAgain } from "./notebook_output.js";
import { showStartFailure } from "./start_failure.js";
import { livePlayers, render } from "./widget.js";

/** @import { PageState } from "../common/payload" */
/** @import { Model } from "../common/types" */

/**
 * Makes a model with those methods of an anywidget model that the player uses.
 * @param {PageState} state
 * @returns {Model}
 */
function makeModel(state) {
  /** @type {Map<string, Set<() => void>>} */
  const listenersByEvent = new Map();
  /** @param {string} event */
  const listeners = (event) => {
    const acts = listenersByEvent.get(event) ?? new Set();
    listenersByEvent.set(event, acts);
    return acts;
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
 * Returns the SVG of a static picture, which is an svg element, or an image.
 * @param {Element} shown
 */
function svgMarkup(shown) {
  if (!(shown instanceof HTMLImageElement)) return shown.outerHTML;
  const bytes = Uint8Array.from(atob(shown.src.split(",")[1]), (byte) => byte.charCodeAt(0));
  // The image's own dark-mode style would apply to the whole page; the player has its own.
  return new TextDecoder().decode(bytes).replace(/<style>.*?<\/style>/, "");
}

/**
 * Returns whether no element has the focus or is about to get it: browsers focus an autofocus element only when they
 * first draw the page. In a frame the answer is no, since an element of the outer page may have the focus.
 */
function isKeyboardFree() {
  if (globalThis.top !== globalThis.self || isEmbedded() || document.querySelector("[autofocus]")) return false;
  const holder = document.activeElement;
  return holder === null || holder === document.body || holder === document.documentElement;
}

/** Returns whether the page is to be shown inside another one, without title, hint and foot: its address ends in `?embed`. */
const isEmbedded = () => new URLSearchParams(location.search).has("embed");

/** A window with room for the player alone, such as that of a phone on its side. */
const LOW_WINDOW = "(max-height: 480px)";

/** Shows the player alone, without title, hint and foot, inside another page and in a low window. */
function showAlone() {
  const low = matchMedia(LOW_WINDOW);
  const follow = () => document.documentElement.classList.toggle("hv-embed", isEmbedded() || low.matches);
  low.addEventListener("change", follow);
  follow();
}

/**
 * Resolves when the player shows its first picture, which may have to be unpacked first; rejects if the player fails.
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
 * Replaces the static picture by the player. If the player fails, the picture stays, below an error message.
 * @param {Element} still
 */
async function replaceStaticPicture(still) {
  const root = still.parentElement;
  const data = /** @type {HTMLElement | null} */ (root?.querySelector(".hv-state"));
  if (!root || !data) return;
  handOverToLivePlayer(root);
  const restoreStyles = dropNotebookStyles(root);
  // Set before anything is awaited: the script of another output must not start this player again.
  root.classList.add("hv-starts");
  const live = makeElement("div", "hv-live");
  try {
    await startPlayer(still, live, await unpack(data.textContent ?? ""));
  } catch (error) {
    live.remove();
    restoreStyles();
    showStartFailure(still, data, error);
    return;
  }
  root.classList.add("hv-plays");
  measureOutputAgain(root);
  const player = live.firstElementChild;
  // In a page of its own the player gets the focus, unless another element has it.
  if (root.matches("main") && isKeyboardFree() && player instanceof HTMLElement) player.focus({ preventScroll: true });
}

/**
 * Lets a player with a kernel take over this element, if there is one.
 * @param {Element} root
 */
function handOverToLivePlayer(root) {
  const element = /** @type {HTMLElement | null} */ (root.closest("[data-twin]"));
  if (element) livePlayers().get(element.dataset.twin ?? "")?.(element);
}

/**
 * Starts the player in front of the static picture, in the reader's language if it is there; until it is ready, it has
 * its size but is hidden.
 * @param {Element} still
 * @param {HTMLElement} live
 * @param {PageState} state
 */
async function startPlayer(still, live, state) {
  if (!state.content.svgs.length) state.content.svgs = [...still.querySelectorAll("svg, img")].map(svgMarkup);
  still.before(live);
  const ready = whenDrawn(live);
  const model = makeModel(state);
  model.on("change:content", () => showPageTexts(state.content.language));
  const preferred = navigator.languages.map((tag) => tag.split("-")[0]);
  const known = [state.content.language, ...Object.keys(state.content.others)];
  const chosen = preferred.find((name) => known.includes(name)) ?? state.content.language;
  if (chosen !== state.content.language) await changeLanguage(model, chosen);
  render({ model, el: live });
  await ready;
}

/**
 * Shows the texts around the player in one language; a page in a single language has no marked texts.
 * @param {string} language
 */
function showPageTexts(language) {
  const texts = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-language]"));
  for (const text of texts) {
    text.hidden = text.dataset.language !== language;
    if (text.matches("h1:not([hidden])")) document.title = text.textContent;
  }
  if (texts.length) document.documentElement.lang = tagOf(language);
}

if (document.querySelector("main.hv-page")) showAlone();
// Not through document.currentScript: some notebooks move the scripts of an output and run them elsewhere.
document.querySelectorAll(":not(.hv-starts) > .hv-still:has(~ .hv-state)").forEach(replaceStaticPicture);
