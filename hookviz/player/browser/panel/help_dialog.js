// The list of keys.

import { findElement, listen, makeElement, makeTextButton } from "../common/dom.js";
import { HELP } from "../common/key_bindings.js";

/** @import { Actions, Context } from "../common/types" */

/**
 * Makes the list of keys. The dialog element keeps the focus inside, and restores it when it closes.
 * @param {Context} context
 */
export function makeHelpDialog({ say, signal }) {
  const title = say("help");
  const dialog = makeElement("dialog", "hv-help", "", { "aria-label": title });
  const list = makeElement("dl", "hv-help-list");
  const close = makeTextButton(say("close"), () => dialog.close(), signal);
  const head = makeElement("div", "hv-help-head");
  // First, since the button gets the focus: a long list would otherwise open scrolled to its end.
  head.append(close, makeElement("p", "hv-help-title", title));
  dialog.append(head, list);
  // A click on the dialog element itself is outside of its content.
  listen(dialog, "click", (event) => event.target === dialog && dialog.close(), signal);
  listen(window, "resize", () => dialog.open && place(dialog), signal);
  /**
   * Lists the keys that do something in this player.
   * @param {Actions} actions
   */
  const fill = (actions) => {
    for (const [name] of HELP.filter(([, action]) => action in actions)) {
      const [row, keys] = [makeElement("div"), makeElement("dt")];
      keys.append(...say(`keys_${name}`).split(" ").map((key) => makeElement("kbd", "", key)));
      row.append(keys, makeElement("dd", "", say(`does_${name}`)));
      list.append(row);
    }
  };
  const open = () => {
    dialog.showModal();
    place(dialog);
  };
  return { dialog, fill, toggle: () => (dialog.open ? dialog.close() : open()) };
}

/**
 * Places the dialog in the middle of the player, which may not be the middle of a page with a side bar, and on the
 * screen. A list that is too long for the screen scrolls, so it can be focused.
 * @param {HTMLDialogElement} dialog
 */
function place(dialog) {
  const around = dialog.parentElement?.getBoundingClientRect();
  dialog.style.setProperty("--hv-around", `${around?.width ?? innerWidth}px`);
  const half = dialog.offsetWidth / 2 + 12;
  if (around) dialog.style.left = `${Math.max(half, Math.min(innerWidth - half, around.left + around.width / 2))}px`;
  const list = findElement(dialog, ".hv-help-list");
  if (list.scrollHeight > list.clientHeight + 1) list.tabIndex = 0;
  else list.removeAttribute("tabindex");
}
