// The view menu: speed, layers, colours, larger text, full screen and language.

import { addKeyHint, findElement, listen, makeElement, makeTextButton, setAttributes } from "../common/dom.js";
import { isFullScreen, toggleFullScreen } from "../host/full_screen.js";
import { makeLanguageSwitch } from "../host/language_switch.js";
import { hasLayers } from "../picture/picture_pane.js";

/** @import { Panel } from "./panel.js" */
/** @import { Actions, Context } from "../common/types" */

/** @type {[number, string][]} */
const SPEEDS = [[0.5, "speed_half"], [1, "speed_one"], [2, "speed_two"], [4, "speed_four"]];
/** The entries: their names, their keys, and the texts of the list of keys that explain them. */
/** @type {["tensors" | "norms" | "large" | "full", string, string][]} */
const SWITCHES = [
  ["tensors", "T", "does_layers"], ["norms", "C", "does_norms"], ["large", "L", "does_large"], ["full", "F", "does_full"],
];

/**
 * @param {Context} context
 * @param {Panel} panel
 * @param {HTMLElement[]} plots the button that opens them
 */
export function makeViewMenu(context, panel, plots) {
  const { model, say, root, driver, signal } = context;
  const pane = makeElement("details", "hv-view hv-drawer");
  const menu = makeElement("div", "hv-menu", "", { role: "group", "aria-label": say("view") });
  const missing = hasLayers(context) ? "" : say("no_layers");
  /** @type {Actions} */
  const actions = {
    tensors: () => (missing ? panel.showMessage(missing) : driver.setTraits({ tensors: !model.get("tensors") })),
    norms: () => driver.setTraits({ norms: !model.get("norms") }),
    large: () => driver.setTraits({ large: !model.get("large") }),
    full: () => toggleFullScreen(root, () => panel.showMessage(say("no_full"))),
  };
  const buttons = SWITCHES.map(([name, key]) => addKeyHint(makeTextButton(say(`${name}`), actions[name], signal), key));
  SWITCHES.forEach(([name, key, about], i) => {
    const reason = name === "tensors" ? missing : "";
    setAttributes(buttons[i], reason ? { "aria-disabled": true, title: reason } : { title: `${say(about)} (${key})` });
  });
  pane.append(makeElement("summary", "hv-button", say("view"), { "data-key": "view" }), menu);
  menu.append(...plots, ...buttons, makeSpeeds(context), ...[makeLanguageSwitch(context, panel) ?? []].flat());
  closeOnLeaving(pane, root, signal);
  const paint = () => {
    root.classList.toggle("hv-large", Boolean(model.get("large")));
    SWITCHES.forEach(([name], i) => {
      setAttributes(buttons[i], { "aria-pressed": name === "full" ? isFullScreen(root) : Boolean(model.get(name)) });
    });
  };
  driver.onChange("change:large change:tensors change:norms", paint);
  listen(root, "fullscreenchange", paint, signal);
  paint();
  return { pane, actions };
}

/**
 * Closes the menu on Escape, on a press elsewhere, and when another menu opens.
 * @param {HTMLDetailsElement} pane
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
export function closeOnLeaving(pane, root, signal) {
  listen(pane, "keydown", (event) => {
    if (event.key !== "Escape" || !pane.open) return;
    event.stopPropagation();
    pane.open = false;
    findElement(pane, "summary").focus();
  }, signal);
  listen(root, "pointerdown", (event) => {
    if (!pane.contains(event.target)) pane.open = false;
  }, signal);
  // All menus open at the same place. A click, also one by a key, comes before the menu opens; "toggle" comes later, and
  // by then another menu may have been opened.
  listen(findElement(pane, "summary"), "click", () => {
    for (const other of root.querySelectorAll(".hv-controls > details[open]")) {
      if (other !== pane) other.removeAttribute("open");
    }
  }, signal);
}

/** @param {Context} context */
function makeSpeeds({ say, driver, signal }) {
  const pane = makeElement("div", "hv-speeds", "", { role: "group", "aria-label": say("speed") });
  const buttons = SPEEDS.map(([speed, name]) => {
    const button = makeTextButton(say(`${name}`), () => driver.setTraits({ speed }), signal);
    button.dataset.speed = String(speed);
    button.title = say("speed");
    return button;
  });
  pane.append(...buttons);
  const paint = () => {
    const { speed } = driver.position();
    for (const button of buttons) setAttributes(button, { "aria-pressed": Number(button.dataset.speed) === speed });
  };
  driver.onChange("change:speed", paint);
  paint();
  return pane;
}
