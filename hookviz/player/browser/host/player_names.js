// The name of each player for screen readers: unique in the page or notebook.

import { onAbort } from "../common/dom.js";

/** @import { LoadedContent } from "../common/types" */

/**
 * Names a player after what it shows, and numbers all players of the document in their order.
 * @param {HTMLElement} root
 * @param {LoadedContent} loaded
 * @param {AbortSignal} signal
 */
export function namePlayer(root, { say, content }, signal) {
  const about = content.about || say("player");
  // The name keeps its placeholder, which numberPlayers fills: other players may come and go.
  root.dataset.named = say("named", { about });
  root.dataset.alone = say("named_alone", { about });
  numberPlayers();
  // A notebook may add the player to the document later; then it gets a size.
  const observer = new ResizeObserver(numberPlayers);
  observer.observe(root);
  onAbort(signal, () => observer.disconnect());
}

/** Numbers all players of the document. */
export function numberPlayers() {
  /** @type {NodeListOf<HTMLElement>} */
  const players = document.querySelectorAll(".hv-player[data-named]");
  players.forEach((player, i) => {
    const { named = "", alone = "" } = player.dataset;
    const name = players.length > 1 ? named.replace("{number}", String(i + 1)) : alone;
    if (player.getAttribute("aria-label") !== name) player.setAttribute("aria-label", name);
  });
}
