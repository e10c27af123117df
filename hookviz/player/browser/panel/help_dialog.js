// Dialogs over the player, and the one with the list of keys.

import { listen, makeElement, makeTextButton } from "../common/dom.js";
import { HELP } from "../common/key_bindings.js";

/** @import { Actions, Context } from "../common/types" */

/**
 * Makes a dialog. The dialog element keeps the focus inside, and restores it when it closes.
 * @param {Context} context
 * @param {string} name of its action, and of its label
 * @param {HTMLElement} head beside the button that closes it
 * @param {HTMLElement} body scrolls if it is too long for the screen, so it can be focused then
 */
export function makeDialog({ say, signal }, name, head, body) {
  const dialog = makeElement("dialog", `hv-help hv-${name}`, "", { "aria-label": say(name), "data-action": name });
  const row = makeElement("div", "hv-help-head");
  // First, since the button gets the focus: a long list would otherwise open scrolled to its end.
  row.append(makeTextButton(say("close"), () => dialog.close(), signal), head);
  dialog.append(row, body);
  // In the middle of the player, which may not be the middle of a page with a side bar, and on the screen.
  const place = () => {
    const around = dialog.parentElement?.getBoundingClientRect();
    dialog.style.setProperty("--hv-around", `${around?.width ?? innerWidth}px`);
    const half = dialog.offsetWidth / 2 + 12;
    if (around) dialog.style.left = `${Math.max(half, Math.min(innerWidth - half, around.left + around.width / 2))}px`;
    if (body.scrollHeight > body.clientHeight + 1) body.tabIndex = 0;
    else body.removeAttribute("tabindex");
  };
  const toggle = () => {
    if (dialog.open) return dialog.close();
    dialog.showModal();
    place();
  };
  // A click on the dialog element itself is outside of its content.
  listen(dialog, "click", (event) => event.target === dialog && dialog.close(), signal);
  listen(window, "resize", () => dialog.open && place(), signal);
  return { dialog, toggle, place };
}

/**
 * Makes the list of keys.
 * @param {Context} context
 */
export function makeHelpDialog(context) {
  const { say } = context;
  const list = makeElement("dl", "hv-help-list");
  const { dialog, toggle } = makeDialog(context, "help", makeElement("p", "hv-help-title", say("help")), list);
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
  return { dialog, fill, toggle };
}
