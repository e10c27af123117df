// The player as a widget of anywidget.

import { showPlayer } from "./player.js";

/** @import { Model } from "./types" */

/**
 * anywidget's door: shows the model in an element, and returns what takes it away again.
 * @param {{ model: Model, el: HTMLElement }} view
 */
export function render({ model, el }) {
  const { root, close } = showPlayer(model, el);
  const giveBack = takeOverTwins(root, model.get("twin"));
  return () => {
    close();
    giveBack();
  };
}

/** @typedef {(place: Element) => void} Take */

/** The living players that take the place of one in a page, by the name of that place. */
export function livePlayers() {
  const shared = /** @type {typeof globalThis & { hookvizLive?: Map<string, Take> }} */ (globalThis);
  return (shared.hookvizLive ??= new Map());
}

/**
 * Where a page has a player that needs no kernel, the living one takes its place, and gives it back in the end.
 * @param {HTMLElement} root
 * @param {string} twin
 */
function takeOverTwins(root, twin) {
  const living = livePlayers();
  /** @type {Map<Element, ChildNode[]>} */
  const taken = new Map();
  /** @type {Take} */
  const take = (place) => {
    taken.set(place, [...place.childNodes]);
    place.replaceChildren(root);
  };
  living.set(twin, take);
  document.querySelectorAll(`[data-twin="${twin}"]`).forEach(take);
  return () => {
    living.delete(twin);
    for (const [place, before] of taken) place.replaceChildren(...before);
  };
}

export default { render };
