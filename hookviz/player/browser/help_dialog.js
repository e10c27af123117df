// The list of keys.

import { listen, makeElement, makeTextButton } from "./dom.js";
import { HELP } from "./key_bindings.js";

/** @import { Actions, Context } from "./types" */

/**
 * Makes the list of keys. The dialog element keeps the focus inside, and restores it when it closes.
 * @param {Context} context
 */
export function makeHelpDialog({ language, signal }) {
  const dialog = makeElement("dialog", "hv-help", "", { "aria-label": language.say("player.help") });
  const list = makeElement("dl");
  const close = makeTextButton(language.say("player.close"), () => dialog.close(), signal);
  // First, since the button gets the focus: a long list would otherwise open scrolled to its end.
  dialog.append(close, makeElement("p", "hv-help-title", language.say("player.help")), list);
  // A click on the dialog element itself is outside of its content.
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
  return { dialog, fill, toggle: () => (dialog.open ? dialog.close() : openDialog(dialog)) };
}

/**
 * Opens the dialog in the middle of the player, which may not be the middle of a page with a side bar.
 * @param {HTMLDialogElement} dialog
 */
function openDialog(dialog) {
  const around = dialog.parentElement?.getBoundingClientRect();
  if (around) dialog.style.left = `${around.left + around.width / 2}px`;
  dialog.showModal();
}
