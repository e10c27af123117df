// Links in the text around the players: `#step-7` leads to step 7 of the nearest player above the link.

import { atEnd, gliding } from "./dom.js";

/** The step that a link's address names, counted from 0; null where it names none. */
export function stepOf(address) {
  const found = /#step-([1-9]\d*)$/.exec(address ?? "");
  return found && found[1] - 1;
}

/** Follow the links that are this player's. */
export function followLinks(root, go, signal) {
  const follow = (event) => {
    const link = event.target.closest?.("a[href]");
    const step = stepOf(link?.getAttribute("href"));
    if (step === null || nearestAbove(link) !== root) return;
    // The notebook or the page around would look for a heading of that name.
    event.preventDefault();
    event.stopPropagation();
    go(step);
    // The whole player may be too large for the screen; and the next key is for it.
    root.focus({ preventScroll: true });
    root.querySelector(".hv-panel").scrollIntoView({ block: "nearest", behavior: gliding() });
  };
  // In the capture phase, before the notebook hears of it.
  document.addEventListener("click", follow, true);
  atEnd(signal, () => document.removeEventListener("click", follow, true));
}

/** Of one notebook, where several are open. */
function nearestAbove(link) {
  const players = [...(link.closest(".jp-Notebook") ?? document).querySelectorAll(".hv-player")];
  return players.findLast((player) => player.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING);
}
