// Keyboard focus: the player has it, or the notebook or page around the player.

import { closestTarget, listen } from "../common/dom.js";
import { actionOf, digitOf } from "../common/key_bindings.js";
import { isFullScreen } from "./full_screen.js";

/** @import { Panel } from "../panel/panel.js" */
/** @import { Actions, Context } from "../common/types" */

/** Programs around a player that have keys of their own. */
export const HOSTS = ".jp-Notebook, .jp-NotebookPanel, .notebook_app, .reveal";

const STEPS = ["next", "previous", "nextHook", "previousHook"];

/**
 * Escape closes the list of findings, then leaves the player. The first press only announces that it leaves, so that
 * nobody leaves by accident. When the keys go elsewhere, the panel says so.
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeEscape({ root, say, signal }, panel) {
  let warned = false;
  /** @param {string} key */
  const showNote = (key) => { panel.keysNote.textContent = key && say(key); };
  /** @param {string} key */
  const announceNote = (key) => {
    showNote(key);
    panel.announce(say(key));
  };
  const leave = () => {
    setInUse(root, false);
    releaseFocus(root);
    announceNote(isAlone(root) ? "esc_free" : "esc_leaves");
  };
  const escape = () => {
    const found = root.querySelector(".hv-found[open]");
    if (found) {
      found.removeAttribute("open");
      root.querySelector(".hv-contents")?.scrollIntoView({ block: "nearest" });
      root.focus({ preventScroll: true });
    } else if (isFullScreen(root)) document.exitFullscreen();
    else if (warned) leave();
    else {
      warned = true;
      announceNote("esc_stays");
    }
  };
  const reset = () => {
    warned = false;
    showNote("");
  };
  listen(root, "focusin", reset, signal);
  listen(root, "pointerdown", reset, signal);
  listen(root, "keydown", (event) => event.key === "Escape" || reset(), signal);
  followUse(root, (isOtherPlayer) => showNote(isOtherPlayer || isAlone(root) ? "" : "esc_leaves"), signal);
  /** @type {Actions} */
  const actions = { escape, leave };
  return { actions };
}

/**
 * Gives the focus to the next cell of the notebook around the player, so that Shift+Enter does not run the cell of the
 * player again, or to the page.
 * @param {HTMLElement} root
 */
function releaseFocus(root) {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  const cell = root.closest(".jp-Notebook .jp-Cell");
  /** @type {HTMLElement | null} */ (cell?.nextElementSibling ?? cell)?.focus();
  if (root.closest(".notebook_app")) selectNextClassicCell();
}

/** The classic notebook reads the code of a key, which has no name in the standard. */
function selectNextClassicCell() {
  const key = { key: "ArrowDown", code: "ArrowDown", keyCode: 40, which: 40, bubbles: true, cancelable: true };
  document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", key));
}

/**
 * A player is in use while it has the focus, or was pressed last. The root keeps this, since the rest may be rebuilt.
 * @param {HTMLElement} root
 * @param {boolean} isInUse
 */
function setInUse(root, isInUse) {
  root.dataset.inUse = isInUse ? "yes" : "";
  if (isInUse) root.dataset.used = "yes";
}

/** @param {HTMLElement} root */
const isInUse = (root) => Boolean(root.dataset.inUse);

/**
 * Whether this is the only player of a page without keys of its own, and is on the screen.
 * @param {HTMLElement} root
 */
function isAlone(root) {
  const { top, bottom } = root.getBoundingClientRect();
  const isSeen = bottom > 0 && top < innerHeight;
  return isSeen && !root.closest(HOSTS) && document.querySelectorAll(".hv-player").length === 1;
}

/**
 * Follows whether the player is in use.
 * @param {HTMLElement} root
 * @param {(isOtherPlayer: boolean) => void} letGo is called when the keys go elsewhere, such as to another player
 * @param {AbortSignal} signal
 */
function followUse(root, letGo, signal) {
  /** @param {Event} event */
  const follow = (event) => {
    const path = event.composedPath();
    if (path.includes(root)) setInUse(root, true);
    else if (isInUse(root)) {
      setInUse(root, false);
      letGo(path.some((part) => part instanceof Element && part.matches(".hv-player")));
    }
  };
  for (const type of ["pointerdown", "focusin"]) document.addEventListener(type, follow, { capture: true, signal });
}

/**
 * Carries out the player's keys, and keeps all keys but Tab from the notebook.
 * @param {HTMLElement} root
 * @param {(action: string) => void} act
 * @param {AbortSignal} signal
 */
export function handleKeys(root, act, signal) {
  listen(root, "keydown", (event) => {
    if (event.key === "Tab") return;
    event.stopPropagation();
    const action = actionOf(event, Boolean(closestTarget(event, "button, summary, a, input, select")));
    // An open dialog keeps its keys, but for the one that closes it.
    const open = /** @type {HTMLElement | null} */ (root.querySelector("dialog[open]"));
    if (!action || (open && action !== open.dataset.action)) return;
    event.preventDefault();
    // A held Escape key repeats, and would leave at once.
    if (action === "escape" && event.repeat) return;
    act(action);
    // Shift+Enter goes on in the notebook, whose next cell has the focus now.
    if (event.key === "Enter") document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", event));
  }, signal);
  handleStrayKeys(root, act, signal);
}

/**
 * Takes keys that are pressed while nothing has the focus, if the player is in use or alone, and takes the focus again.
 * @param {HTMLElement} root
 * @param {(action: string) => void} act
 * @param {AbortSignal} signal
 */
function handleStrayKeys(root, act, signal) {
  /**
   * @param {KeyboardEvent} event
   * @param {(action: string) => boolean} isTaken whether the player takes the key of an action, and not the page
   */
  const take = (event, isTaken) => {
    const action = actionOf(event);
    if (!action || !isTaken(action)) return;
    event.preventDefault();
    root.focus({ preventScroll: true });
    act(action);
  };
  // In the capture phase, before the listeners of the notebook.
  window.addEventListener("keydown", (event) => {
    if (!isStray(event) || !isInUse(root)) return;
    event.stopImmediatePropagation();
    take(event, (action) => action !== "leave");
  }, { capture: true, signal });
  // After all listeners of the page, whose keys come first.
  listen(window, "keydown", (event) => {
    if (!isStray(event) || event.defaultPrevented || !isAlone(root)) return;
    take(event, (action) => isStep(action) || (Boolean(root.dataset.used) && !["leave", "escape"].includes(action)));
  }, signal);
}

/**
 * Whether an action steps or flips a switch. A player that was not used yet takes only these keys: the others may scroll the page.
 * @param {string} action
 */
const isStep = (action) => STEPS.includes(action) || digitOf(action) > 0;

/** @param {KeyboardEvent} event */
const isStray = ({ target, key }) => key !== "Tab" && (target === document.body || target === document.documentElement);
