// Links in the text around the players: `#step-7` leads to step 7 of the nearest player above the link.

import { findElement, onAbort, scrollBehavior } from "./dom.js";

/**
 * Returns the step of a link's address, counted from 0; null for other addresses.
 * @param {string | null | undefined} address
 */
export function stepOf(address) {
  const match = /#step-([1-9]\d*)$/.exec(address ?? "");
  return match && Number(match[1]) - 1;
}

/**
 * Follows the links whose nearest player above is this one.
 * @param {HTMLElement} root
 * @param {(step: number) => void} go
 * @param {AbortSignal} signal
 */
export function followLinks(root, go, signal) {
  /** @param {MouseEvent} event */
  const follow = (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    const step = stepOf(link?.getAttribute("href"));
    if (!link || step === null || nearestAbove(link) !== root) return;
    // The notebook or page would look for a heading with that name.
    event.preventDefault();
    event.stopPropagation();
    go(step);
    // The player gets the focus for the next key. Only its panel is scrolled into view: the player may be larger than the screen.
    root.focus({ preventScroll: true });
    findElement(root, ".hv-panel").scrollIntoView({ block: "nearest", behavior: scrollBehavior() });
  };
  // In the capture phase, before the listeners of the notebook.
  document.addEventListener("click", follow, true);
  onAbort(signal, () => document.removeEventListener("click", follow, true));
}

/**
 * Returns the last player before a link, in the same notebook.
 * @param {Element} link
 */
function nearestAbove(link) {
  const players = [...(link.closest(".jp-Notebook") ?? document).querySelectorAll(".hv-player")];
  return players.findLast((player) => player.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING);
}
