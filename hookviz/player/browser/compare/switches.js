// What-if switches: each hook has a switch, which shows the run without it. A split view shows two runs side by side.

import { flipSwitch, switchesOff } from "./comparison.js";
import { addKeyHint, closestTarget, escapeBidi, listen, makeElement, makeTextButton, setAttributes } from "../common/dom.js";

/** @import { Panel } from "../panel/panel.js" */
/** @import { Switch } from "../common/payload" */
/** @import { Actions, Context } from "../common/types" */

/**
 * Returns functions that tell whether a hook has a switch, and whether it is off.
 * @param {Context} context
 */
export function switchState({ model, content }) {
  const off = new Set(switchesOff(content.combinations, model.get("shown")).flatMap((index) => content.switches[index].hooks));
  const all = new Set(content.switches.flatMap(({ hooks }) => hooks));
  return { isSwitch: (/** @type {number} */ hook) => all.has(hook), isOff: (/** @type {number} */ hook) => off.has(hook) };
}

/**
 * Makes a row with a switch for each hook. The pins in the picture flip the switches, too.
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeSwitches(context, panel) {
  const { model, say, driver, root, content, signal } = context;
  const { switches, combinations, runs } = content;
  const pane = makeElement("div", "hv-switches", "", { role: "group", "aria-label": say("switches") });
  const off = switchesOff(combinations, model.get("shown"));
  /** @param {number} index */
  const act = (index) => {
    if (!switches[index]) return;
    const { shown, resetsOthers } = flipSwitch(combinations, model.get("shown"), index);
    root.dataset.flipped = resetsOthers ? "alone" : "one";
    driver.setTraits({ shown, flipped: true });
  };
  const split = () => driver.setTraits({ split: !model.get("split") });
  pane.hidden = runs.length < 2;
  if (switches.length) pane.append(makeElement("span", "hv-label", say("switches")));
  switches.forEach((hookSwitch, index) => pane.append(makeHookSwitch(context, hookSwitch, index, !off.includes(index), () => act(index))));
  const splitButton = addKeyHint(makeTextButton(say("split"), split, signal), "S");
  setAttributes(splitButton, { "aria-pressed": Boolean(model.get("split")), "data-key": "split" });
  pane.append(splitButton);
  listen(root, "click", (event) => {
    const pin = closestTarget(event, ".hv-switch-pin");
    if (pin) act(switches.findIndex(({ hooks }) => hooks.includes(Number(pin.dataset.hook))));
  }, signal);
  /** Announces what the last flip changed, once the player is rebuilt; the panel shows it as long as the switch is off. */
  const showFlipMessage = () => {
    const { flipped } = root.dataset;
    delete root.dataset.flipped;
    if (flipped === "alone") panel.showMessage(say("flip_alone"));
    if (flipped && panel.flipResult) panel.announce(`${panel.flipResult} ${panel.liveRegion.textContent}`);
  };
  /** @type {Actions} */
  const actions = {};
  if (runs.length > 1) actions.split = split;
  // While predicting, digits are answers, even if no question is open.
  /** @param {number} index */
  const press = (index) => (model.get("predict") ? panel.showMessage(say("ask_digits")) : act(index));
  switches.slice(0, 9).forEach((_, index) => { actions[`digit${index + 1}`] = () => press(index); });
  return { pane, showFlipMessage, actions };
}

/**
 * @param {Context} context
 * @param {Switch} hookSwitch
 * @param {number} index
 * @param {boolean} isOn
 * @param {() => void} act
 */
function makeHookSwitch({ signal }, { label, on }, index, isOn, act) {
  const button = makeTextButton("", act, signal);
  setAttributes(button, { role: "switch", "aria-checked": isOn, "data-key": `switch ${index}` });
  button.classList.add("hv-switch");
  /**
   * Makes a text that may be cut in the row of switches; its title has the whole text.
   * @param {string} name
   * @param {string} text
   */
  const named = (name, text) => makeElement("span", name, text, { title: escapeBidi(text) });
  button.append(makeElement("span", "hv-knob"), named("hv-user", label), named("hv-switch-on", on));
  return index < 9 ? addKeyHint(button, index + 1) : button;
}
