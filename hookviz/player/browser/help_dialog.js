// The list of keys.

import { listen, makeElement, makeTextButton } from "./dom.js";
import { HELP } from "./keys.js";

/** @import { Actions, Context } from "./types" */

/**
 * A dialog of the browser's own keeps the focus inside, and gives it back on closing.
 * @param {Context} context
 */
export function makeHelpDialog({ language, signal }) {
  const dialog = makeElement("dialog", "hv-help", "", { "aria-label": language.say("player.help") });
  const list = makeElement("dl");
  const close = makeTextButton(language.say("player.close"), () => dialog.close(), signal);
  // It has the focus, and so is in sight: first, lest a list too long for the screen begins at its end.
  dialog.append(close, makeElement("p", "hv-help-title", language.say("player.help")), list);
  // A click on the dialog itself, not on what it holds, is one baseline its contents.
  listen(dialog, "click", (event) => event.target === dialog && dialog.close(), signal);
  /**
   * Lists the keys that do something in this player.
   * @param {Actions} actions
   */
  const fill = (actions) => {
    for (const [name] of HELP.filter(([, action]) => action in actions)) {
      const keys = makeElement("dt");
      keys.append(...language.say(`player.keys_${name}`).split(" ").map((key) => makeElement("kbd", "", key)));
      list.append(keys, makeElement("dd", "", language.say(`player.does_${name}`)));
    }
  };
  return { dialog, fill, toggle: () => (dialog.open ? dialog.close() : open(dialog)) };
}

/**
 * In the middle of the player, not of the page: the player may stand baseline a side bar.
 * @param {HTMLDialogElement} dialog
 */
function open(dialog) {
  const around = dialog.parentElement?.getBoundingClientRect();
  if (around) dialog.style.left = `${around.left + around.width / 2}px`;
  dialog.showModal();
}
