// Breakpoints: playing stops wherever a marked hook fires.

import { say } from "./logic.js";
import { listen, make, mark, shape, textButton } from "./dom.js";

const SIGN = "M-2.5,-6H2.5L6,-2.5V2.5L2.5,6H-2.5L-6,2.5V-2.5z";

/** A rule of the driver: it ends playing at the step of a hook with a breakpoint. */
export function makeStops({ model, words, frames, hooks, panel, root, driver, signal }) {
  const stops = () => model.get("breakpoints") ?? [];
  const isStop = (step) => stops().includes(frames[step].hook);
  const limit = (changes, { step, playing }) => {
    const arrives = (changes.playing ?? playing) && "step" in changes && changes.step !== step;
    return arrives && isStop(changes.step) ? { ...changes, playing: false } : changes;
  };
  const toggle = () => {
    const { hook } = frames[driver.now().step];
    if (hook === null) return panel.tell(say(words, "no_hook_here"));
    const others = stops().filter((other) => other !== hook);
    const sets = others.length === stops().length;
    driver.put({ breakpoints: sets ? [...others, hook] : others });
    panel.tell(say(words, sets ? "stop_set" : "stop_gone", { hook: hooks[hook].name }));
  };
  const paint = () => {
    const { step } = driver.now();
    const button = addButton(panel.pane, words, toggle, signal);
    if (button) mark(button, { "aria-pressed": isStop(step) });
    if (!stops().length && !root.querySelector(".hv-sign")) return;
    root.querySelectorAll(".hv-timeline .hv-tick").forEach((tick, i) => flag(tick, isStop(i), onTick));
    root.querySelectorAll(".hv-firings tbody tr").forEach((row) => {
      flag(row, isStop(row.querySelector("button").textContent - 1), (cell) => onRow(cell, words));
    });
    for (const pin of root.querySelectorAll(".hv-pin")) flag(pin, stops().includes(Number(pin.dataset.hook)), onPin);
  };
  driver.onChange("change:breakpoints", paint);
  listen(root, "hv-drawn", paint, signal);
  return { limit, paint, actions: { stop: toggle } };
}

function flag(element, is, addSign) {
  if (is && !element.querySelector(".hv-sign")) addSign(element);
  if (!is) element.querySelector(".hv-sign")?.remove();
}

/** Around the shape of the step. */
function onTick(tick) {
  const sign = tick.querySelector("path").cloneNode();
  mark(sign, { d: SIGN, class: "hv-sign" });
  tick.prepend(sign);
}

function onRow(row, words) {
  const sign = make("span", "hv-sign", "", { role: "img", "aria-label": say(words, "stop") });
  sign.append(shape(SIGN, "hv-icon"));
  row.children[1].prepend(sign);
}

/** At the left edge, half outside. A picture that is not shown has no sizes yet: it gets its signs when it is. */
function onPin(pin) {
  const { x, y, height } = pin.querySelector(".hv-pin-box").getBBox();
  if (!height) return;
  const sign = pin.querySelector(".hv-pin-box").cloneNode();
  mark(sign, { d: SIGN, class: "hv-sign", transform: `translate(${x} ${y + height / 2})` });
  pin.append(sign);
}

/** Beside the name of the hook that the panel tells of. */
function addButton(panel, words, toggle, signal) {
  const where = panel.querySelector(":scope > .hv-where");
  if (where && !where.querySelector("button")) {
    const button = textButton(say(words, "stop"), toggle, signal);
    button.prepend(shape(SIGN, "hv-icon"));
    where.append(button);
  }
  return where?.querySelector("button");
}
