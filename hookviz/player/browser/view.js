// How the player is shown: speed, layers, larger text, full screen, in a menu of their own.

import { say } from "./logic.js";
import { hasLayers } from "./graph.js";
import { keyed, listen, make, mark, textButton } from "./dom.js";

const SPEEDS = [[0.5, "speed_half"], [1, "speed_one"], [2, "speed_two"]];
const LAYERS = [["tensors", "T"], ["nodes", "N"]];
const OTHERS = [["large", "L"], ["full", "F"]];

export function makeView({ model, words, panel, root, driver, large, signal }) {
  const pane = make("details", "hv-view");
  const menu = make("div", "hv-menu", "", { role: "group", "aria-label": say(words, "view") });
  const actions = {
    tensors: () => layer("tensors"),
    nodes: () => layer("nodes"),
    large: () => driver.put({ large: !model.get("large") }),
    full: () => full(root, () => panel.tell(say(words, "no_full"))),
    norms: () => driver.put({ norms: !model.get("norms") }),
  };
  const layer = (name) => {
    if (hasLayers(model)) driver.put({ [name]: !model.get(name) });
    else panel.tell(say(words, "no_layers"));
  };
  const shown = [...(large ? [["norms", "C"]] : LAYERS), ...OTHERS];
  const switches = shown.map(([name, key]) => keyed(textButton(say(words, name), actions[name], signal), key));
  pane.append(make("summary", "hv-button", say(words, "view")), menu);
  menu.append(...switches, makeSpeeds(words, driver, signal));
  closing(pane, root, signal);
  const paint = () => {
    root.classList.toggle("hv-large", Boolean(model.get("large")));
    shown.forEach(([name], i) => mark(switches[i], { "aria-pressed": name === "full" ? isFull(root) : Boolean(model.get(name)) }));
  };
  driver.onChange("change:large change:tensors change:nodes change:norms", paint);
  listen(root, "fullscreenchange", paint, signal);
  paint();
  return { pane, actions };
}

/** Escape and a press elsewhere close the menu, as everywhere. */
function closing(pane, root, signal) {
  listen(pane, "keydown", (event) => {
    if (event.key !== "Escape" || !pane.open) return;
    event.stopPropagation();
    pane.open = false;
    pane.firstChild.focus();
  }, signal);
  listen(root, "pointerdown", (event) => {
    if (!pane.contains(event.target)) pane.open = false;
  }, signal);
}

export const isFull = (root) => root.getRootNode().fullscreenElement === root;

function full(root, refused) {
  if (isFull(root)) document.exitFullscreen();
  else if (root.requestFullscreen) root.requestFullscreen().catch(refused);
  else refused();
}

function makeSpeeds(words, driver, signal) {
  const pane = make("div", "hv-speeds", "", { role: "group", "aria-label": say(words, "speed") });
  const buttons = SPEEDS.map(([speed, word]) => {
    const button = textButton(say(words, word), () => driver.put({ speed }), signal);
    button.dataset.speed = speed;
    return button;
  });
  pane.append(...buttons);
  const paint = () => {
    const { speed } = driver.now();
    for (const button of buttons) mark(button, { "aria-pressed": Number(button.dataset.speed) === speed });
  };
  driver.onChange("change:speed", paint);
  paint();
  return pane;
}
