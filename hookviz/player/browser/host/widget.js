// The player of a model, in an element of the page.

import { showPlayer } from "../player.js";
import { scrollToNewPlayer } from "./notebook_output.js";

/** @import { Model } from "../common/types" */

/** Models that were shown before: a notebook makes the outputs of cells anew that it had put away. @type {WeakSet<Model>} */
const seen = new WeakSet();

/**
 * Shows the model in an element, and returns a function that removes it.
 * @param {{ model: Model, el: HTMLElement }} view
 */
export function render({ model, el }) {
  const { root, close } = showPlayer(model, el);
  const restore = takeOverTwins(root, model.get("twin"));
  const ending = new AbortController();
  if (!seen.has(model)) scrollToNewPlayer(root, ending.signal);
  seen.add(model);
  return () => {
    ending.abort();
    close();
    restore();
  };
}

/** @typedef {(element: Element) => void} TakeOver */

/** Returns name → a function with which the player of that name, which has a kernel, takes over an element of the page. */
export function livePlayers() {
  const shared = /** @type {typeof globalThis & { hookvizLive?: Map<string, TakeOver> }} */ (globalThis);
  return (shared.hookvizLive ??= new Map());
}

/**
 * Lets this player, which has a kernel, replace the content of all elements with its name. Returns a function that
 * restores them.
 * @param {HTMLElement} root
 * @param {string} twin
 */
function takeOverTwins(root, twin) {
  const living = livePlayers();
  /** @type {Map<Element, ChildNode[]>} */
  const replaced = new Map();
  /** @type {TakeOver} */
  const takeOver = (element) => {
    replaced.set(element, [...element.childNodes]);
    element.replaceChildren(root);
  };
  living.set(twin, takeOver);
  document.querySelectorAll(`[data-twin="${twin}"]`).forEach(takeOver);
  return () => {
    living.delete(twin);
    for (const [element, before] of replaced) element.replaceChildren(...before);
  };
}
