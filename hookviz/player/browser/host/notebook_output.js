// The output of a cell in a notebook: what JupyterLab and the classic notebook do to it, undone for the player.

import { onAbort } from "../common/dom.js";

/** The classes with which they style tables, lists, code and pictures of an output; the player has its own styles. */
const STYLES = ["jp-RenderedHTMLCommon", "rendered_html"];

/** @typedef {{ element: ArrayLike<Element>, output_area?: { scroll_if_long: () => void } }} ClassicCell */

/**
 * Removes the notebook's styles from the output around an element; returns a function that restores them.
 * @param {Element} element
 */
export function dropNotebookStyles(element) {
  const found = STYLES.map((name) => ({ name, classes: element.closest(`.${name}`)?.classList }));
  for (const { name, classes } of found) classes?.remove(name);
  return () => { for (const { name, classes } of found) classes?.add(name); };
}

/**
 * The classic notebook puts an output that is longer than 100 lines into a small box that scrolls: it measured the static
 * picture and its tables. Lets it measure the player in their place.
 * @param {Element} element
 */
export function measureOutputAgain(element) {
  const { Jupyter } = /** @type {{ Jupyter?: { notebook?: { get_cells?: () => ClassicCell[] } } }} */ (globalThis);
  const cells = Jupyter?.notebook?.get_cells?.() ?? [];
  cells.find((cell) => cell.element[0].contains(element))?.output_area?.scroll_if_long();
}

/**
 * JupyterLab goes on to the next cell before the output of the one that runs is there. Scrolls to a player that has just
 * appeared above the selected cell, if its cell is on the screen.
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
export function scrollToNewPlayer(root, signal) {
  const cell = root.closest(".jp-Notebook .jp-Cell");
  const isNext = (/** @type {Element} */ active) => cell?.nextElementSibling === active;
  const selected = [...document.querySelectorAll(".jp-Notebook .jp-mod-active")].find(isNext);
  if (!cell || !selected) return;
  const observer = new ResizeObserver(() => {
    if (!root.querySelector(".hv-frame")) return;
    observer.disconnect();
    const { top, bottom } = cell.getBoundingClientRect();
    const isSeen = top < innerHeight && bottom > 0;
    if (isSeen && selected.matches(".jp-mod-active")) root.scrollIntoView({ block: "nearest" });
  });
  observer.observe(root);
  onAbort(signal, () => observer.disconnect());
}
