// Who has the keyboard: the player, or the notebook or page around it.

import { actionOf, say } from "./logic.js";
import { listen } from "./dom.js";
import { isFull } from "./view.js";

/** Escape: the first one only says that another gives the keys away, so that none that follows it is a surprise. */
export function makeKeyboard({ root, words, panel, signal }) {
  let warned = false;
  const note = (key) => {
    panel.keys.textContent = key && say(words, key);
    if (key) panel.say(say(words, key));
  };
  const leave = () => {
    giveAway(root);
    note("esc_leaves");
  };
  const escape = () => {
    if (isFull(root)) return document.exitFullscreen();
    if (warned) return leave();
    warned = true;
    note("esc_stays");
  };
  const begin = () => {
    warned = false;
    note("");
  };
  listen(root, "focusin", begin, signal);
  listen(root, "pointerdown", begin, signal);
  listen(root, "keydown", (event) => event.key === "Escape" || begin(), signal);
  return { actions: { escape, leave } };
}

/** To the notebook around the player, or to the page. */
function giveAway(root) {
  document.activeElement?.blur();
  root.closest(".jp-Notebook")?.focus();
}

/** What the player's keys do; all but Tab are kept from the notebook. */
export function listenToKeys(root, dialog, act, signal) {
  listen(root, "keydown", (event) => {
    if (event.key === "Tab") return;
    event.stopPropagation();
    const action = actionOf(event, Boolean(event.target.closest("button, summary, a, input, select")));
    if (!action || (dialog.open && action !== "help")) return;
    event.preventDefault();
    // Held down, Escape would leave at once.
    if (action === "escape" && event.repeat) return;
    act(action);
    // Running a cell is the notebook's business: it gets the key that we have kept from it.
    if (event.key === "Enter") document.activeElement.dispatchEvent(new KeyboardEvent("keydown", event));
  }, signal);
}
