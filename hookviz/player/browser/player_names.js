// The name of each player for screen readers: unique in the page or notebook.

/** @import { Context } from "./types" */

/**
 * Names a player after what it shows, and numbers all players of the document in their order.
 * @param {Pick<Context, "root" | "language" | "content">} context
 */
export function namePlayer({ root, language, content }) {
  const about = language.read(content.about) || language.say("player.player");
  // The name keeps its placeholder, which numberPlayers fills: other players may come and go.
  root.dataset.named = language.say("player.named", { about });
  root.dataset.alone = language.say("player.named_alone", { about });
  numberPlayers();
}

/** Numbers all players of the document. */
export function numberPlayers() {
  /** @type {NodeListOf<HTMLElement>} */
  const players = document.querySelectorAll(".hv-player[data-named]");
  players.forEach((player, i) => {
    const { named = "", alone = "" } = player.dataset;
    player.setAttribute("aria-label", players.length > 1 ? named.replace("{number}", String(i + 1)) : alone);
  });
}
