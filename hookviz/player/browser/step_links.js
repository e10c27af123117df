// Links in the text around the players: `#step-7` leads to step 7 of the nearest player above the link.

import { findElement, onAbort, scrollBehavior } from "./dom.js";

/**
 * The step that a link's address names, counted from 0; null where it names none.
 * @param {string | null | undefined} address
 */
export function stepOf(address) {
  const found = /#step-([1-9]\d*)$/.exec(address ?? "");
  return found && Number(found[1]) - 1;
}

/**
 * Follows the links that are this player's.
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
    // The notebook or the page around would look for a heading of that name.
    event.preventDefault();
    event.stopPropagation();
    go(step);
    // The whole player may be too large for the screen; and the next key is for it.
    root.focus({ preventScroll: true });
    findElement(root, ".hv-panel").scrollIntoView({ block: "nearest", behavior: scrollBehavior() });
  };
  // In the capture phase, before the notebook hears of it.
  document.addEventListener("click", follow, true);
  onAbort(signal, () => document.removeEventListener("click", follow, true));
}

/**
 * The last player before a link; of one notebook, where several are open.
 * @param {Element} link
 */
function nearestAbove(link) {
  const players = [...(link.closest(".jp-Notebook") ?? document).querySelectorAll(".hv-player")];
  return players.findLast((player) => player.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING);
}
