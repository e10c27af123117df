// How the player is shown: speed, layers, colours, larger text, full screen, in a menu of their own.

import { find, keyed, listen, make, mark, textButton } from "./dom.js";
import { hasLayers } from "./picture_pane.js";

/** @import { Panel } from "./panel.js" */
/** @import { Actions, Context } from "./types" */

/** @type {[number, string][]} */
const SPEEDS = [[0.5, "speed_half"], [1, "speed_one"], [2, "speed_two"]];
/** @type {["tensors" | "nodes" | "norms" | "large" | "full", string][]} */
const SWITCHES = [["tensors", "T"], ["nodes", "N"], ["norms", "C"], ["large", "L"], ["full", "F"]];

/**
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeViewMenu(context, panel) {
  const { model, language, root, driver, signal } = context;
  const pane = make("details", "hv-view");
  const menu = make("div", "hv-menu", "", { role: "group", "aria-label": language.say("player.view") });
  /** @param {"tensors" | "nodes"} name */
  const toggleLayer = (name) => {
    if (hasLayers(context)) driver.put({ [name]: !model.get(name) });
    else panel.tell(language.say("player.no_layers"));
  };
  /** @type {Actions} */
  const actions = {
    tensors: () => toggleLayer("tensors"),
    nodes: () => toggleLayer("nodes"),
    norms: () => driver.put({ norms: !model.get("norms") }),
    large: () => driver.put({ large: !model.get("large") }),
    full: () => toggleFull(root, () => panel.tell(language.say("player.no_full"))),
  };
  const buttons = SWITCHES.map(([name, key]) => keyed(textButton(language.say(`player.${name}`), actions[name], signal), key));
  pane.append(make("summary", "hv-button", language.say("player.view")), menu);
  menu.append(...buttons, makeSpeeds(context));
  closeOnLeaving(pane, root, signal);
  const paint = () => {
    root.classList.toggle("hv-large", Boolean(model.get("large")));
    SWITCHES.forEach(([name], i) => {
      mark(buttons[i], { "aria-pressed": name === "full" ? isFull(root) : Boolean(model.get(name)) });
    });
  };
  driver.onChange("change:large change:tensors change:nodes change:norms", paint);
  listen(root, "fullscreenchange", paint, signal);
  paint();
  return { pane, actions };
}

/**
 * Escape and a press elsewhere close the menu, as everywhere.
 * @param {HTMLDetailsElement} pane
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
function closeOnLeaving(pane, root, signal) {
  listen(pane, "keydown", (event) => {
    if (event.key !== "Escape" || !pane.open) return;
    event.stopPropagation();
    pane.open = false;
    find(pane, "summary").focus();
  }, signal);
  listen(root, "pointerdown", (event) => {
    if (!pane.contains(event.target)) pane.open = false;
  }, signal);
}

/** @param {HTMLElement} root */
export function isFull(root) {
  const tree = root.getRootNode();
  return (tree instanceof Document || tree instanceof ShadowRoot) && tree.fullscreenElement === root;
}

/**
 * @param {HTMLElement} root
 * @param {() => void} refused
 */
function toggleFull(root, refused) {
  if (isFull(root)) document.exitFullscreen();
  else if (root.requestFullscreen) root.requestFullscreen().catch(refused);
  else refused();
}

/** @param {Context} context */
function makeSpeeds({ language, driver, signal }) {
  const pane = make("div", "hv-speeds", "", { role: "group", "aria-label": language.say("player.speed") });
  const buttons = SPEEDS.map(([speed, name]) => {
    const button = textButton(language.say(`player.${name}`), () => driver.put({ speed }), signal);
    button.dataset.speed = String(speed);
    return button;
  });
  pane.append(...buttons);
  const paint = () => {
    const { speed } = driver.position();
    for (const button of buttons) mark(button, { "aria-pressed": Number(button.dataset.speed) === speed });
  };
  driver.onChange("change:speed", paint);
  paint();
  return pane;
}
