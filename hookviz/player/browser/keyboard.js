// Who has the keyboard: the player, or the notebook or page around it.

import { closestTarget, listen } from "./dom.js";
import { actionOf } from "./keys.js";
import { isFullScreen } from "./view_menu.js";

/** @import { Panel } from "./panel.js" */
/** @import { Actions, Context } from "./types" */

/**
 * Escape: the first one only says that another gives the keys away, so that none that follows it is a surprise.
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeEscape({ root, language, signal }, panel) {
  let warned = false;
  /** @param {string} key */
  const note = (key) => {
    const text = key && language.say(key);
    panel.keysNote.textContent = text;
    if (text) panel.announce(text);
  };
  const leave = () => {
    releaseFocus(root);
    note("player.esc_leaves");
  };
  const escape = () => {
    if (isFullScreen(root)) {
      document.exitFullscreen();
      return;
    }
    if (warned) {
      leave();
      return;
    }
    warned = true;
    note("player.esc_stays");
  };
  const begin = () => {
    warned = false;
    note("");
  };
  listen(root, "focusin", begin, signal);
  listen(root, "pointerdown", begin, signal);
  listen(root, "keydown", (event) => event.key === "Escape" || begin(), signal);
  /** @type {Actions} */
  const actions = { escape, leave };
  return { actions };
}

/**
 * Gives the keyboard to the notebook around the player, or to the page.
 * @param {HTMLElement} root
 */
function releaseFocus(root) {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  /** @type {HTMLElement | null} */ (root.closest(".jp-Notebook"))?.focus();
}

/**
 * Carries out the player's keys; all but Tab are kept from the notebook.
 * @param {HTMLElement} root
 * @param {HTMLDialogElement} dialog
 * @param {(action: string) => void} act
 * @param {AbortSignal} signal
 */
export function handleKeys(root, dialog, act, signal) {
  listen(root, "keydown", (event) => {
    if (event.key === "Tab") return;
    event.stopPropagation();
    const action = actionOf(event, Boolean(closestTarget(event, "button, summary, a, input, select")));
    if (!action || (dialog.open && action !== "help")) return;
    event.preventDefault();
    // Held down, Escape would leave at once.
    if (action === "escape" && event.repeat) return;
    act(action);
    // Running a cell is the notebook's business: it gets the key that we have kept from it.
    if (event.key === "Enter") document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", event));
  }, signal);
}
