// Keyboard focus: the player has it, or the notebook or page around the player.

import { closestTarget, listen } from "./dom.js";
import { actionOf } from "./key_bindings.js";
import { isFullScreen } from "./full_screen.js";

/** @import { Panel } from "./panel.js" */
/** @import { Actions, Context } from "./types" */

/**
 * Escape leaves the player. The first press only announces this, so that nobody leaves by accident.
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeEscape({ root, language, signal }, panel) {
  let warned = false;
  /** @param {string} key */
  const showNote = (key) => {
    const text = key && language.say(key);
    panel.keysNote.textContent = text;
    if (text) panel.announce(text);
  };
  const leave = () => {
    releaseFocus(root);
    showNote("player.esc_leaves");
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
    showNote("player.esc_stays");
  };
  const reset = () => {
    warned = false;
    showNote("");
  };
  listen(root, "focusin", reset, signal);
  listen(root, "pointerdown", reset, signal);
  listen(root, "keydown", (event) => event.key === "Escape" || reset(), signal);
  /** @type {Actions} */
  const actions = { escape, leave };
  return { actions };
}

/**
 * Gives the focus to the notebook around the player, or to the page.
 * @param {HTMLElement} root
 */
function releaseFocus(root) {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  /** @type {HTMLElement | null} */ (root.closest(".jp-Notebook"))?.focus();
}

/**
 * Carries out the player's keys, and keeps all keys but Tab from the notebook.
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
    // A held Escape key repeats, and would leave at once.
    if (action === "escape" && event.repeat) return;
    act(action);
    // Shift+Enter runs the cell: pass the key on to the notebook, which has the focus now.
    if (event.key === "Enter") document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", event));
  }, signal);
}
