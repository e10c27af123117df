// The buttons below the timeline: from hook to hook, from step to step, and what opens menus.

import { makeElement, makeShape, makeTextButton, setAttributes } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Context, Position } from "../common/types" */

const BACK = "M4,-6L-5,0L4,6z";
const AHEAD = "M-4,-6V6L5,0z";
const PAUSE = "M-4,-6V6M4,-6V6";
/** A triangle, and the diamond of a hook. */
const HOOKS = "M-8,-5V5L-1,0zM4,-4L8,0L4,4L0,0z";
/** Action → its icon, its key, and whether its label is written on the button. @type {{ [action: string]: [string, string, boolean] }} */
const BUTTONS = {
  previousHook: [BACK, "[", false],
  nextHook: [AHEAD, "]", true],
  playHooks: [HOOKS, "H", true],
  first: ["M-6,-6V6M6,-6L-3,0L6,6z", "Home", false],
  previous: [BACK, "←", false],
  next: [AHEAD, "→", true],
  last: ["M-6,-6L3,0L-6,6zM6,-6V6", "End", false],
  play: [AHEAD, "Space", false],
};

/**
 * Makes the buttons. A press carries out the same action as the key.
 * @param {Context} context
 * @param {(action: string) => void} act
 * @param {HTMLElement[]} others
 */
export function makeControls({ say, run, signal }, act, others) {
  const pane = makeElement("div", "hv-controls");
  const hasHooks = run.steps.some(({ sign }) => sign);
  /** @type {{ [action: string]: HTMLButtonElement }} */
  const buttons = {};
  /** @param {string[]} actions */
  const makeGroup = (actions) => {
    const group = makeElement("div", "hv-buttons");
    for (const action of actions) {
      const [icon, key, isWritten] = BUTTONS[action];
      const button = makeTextButton("", () => act(action), signal);
      button.classList.add(`hv-button-${action}`);
      if (isWritten || (action === "play" && !hasHooks)) button.append(makeElement("span", "hv-button-text"));
      button.append(makeShape(icon, "hv-icon"));
      if (isWritten) button.append(makeElement("kbd", "", key));
      nameButton(button, action, key, say);
      buttons[action] = button;
      group.append(button);
    }
    return group;
  };
  if (hasHooks) pane.append(makeGroup(["previousHook", "nextHook", "playHooks"]));
  pane.append(makeGroup(["first", "previous", "next", "last", "play"]));
  buttons[hasHooks ? "nextHook" : "next"].classList.add("hv-primary");
  const help = makeTextButton("?", () => act("help"), signal);
  setAttributes(help, { "aria-label": say("help"), title: `${say("help")} (?)` });
  help.classList.add("hv-help-button");
  pane.append(...others, help);
  /** @param {Position} position */
  const paint = ({ step, count, playing, hooksOnly }) => {
    // Not the disabled attribute: a disabled button loses the focus.
    for (const action of ["first", "previous"]) disable(buttons[action], step <= 0);
    for (const action of ["next", "last"]) disable(buttons[action], step >= count - 1);
    paintPlay(buttons.play, "play", playing && !hooksOnly, say);
    if (!hasHooks) return;
    paintPlay(buttons.playHooks, "playHooks", playing && hooksOnly, say);
    const [first, last] = [run.steps.findIndex(({ sign }) => sign), run.steps.findLastIndex(({ sign }) => sign)];
    disable(buttons.previousHook, step <= first);
    disable(buttons.nextHook, step >= last);
  };
  return { pane, paint };
}

/**
 * @param {HTMLButtonElement} button
 * @param {boolean} isDisabled
 */
function disable(button, isDisabled) {
  if (button.ariaDisabled !== String(isDisabled)) setAttributes(button, { "aria-disabled": isDisabled });
}

/**
 * Writes the label of an action on its button, or as its name, and its key as hover text.
 * @param {HTMLButtonElement} button
 * @param {string} action
 * @param {string} key
 * @param {Say} say
 */
function nameButton(button, action, key, say) {
  const label = say(`${action}`);
  const text = button.querySelector(".hv-button-text");
  if (text) text.textContent = label;
  setAttributes(button, { "aria-label": label, title: `${label} (${key})` });
}

/**
 * Makes a button that plays one that pauses, and back.
 * @param {HTMLButtonElement} button
 * @param {string} action
 * @param {boolean} isPlaying
 * @param {Say} say
 */
function paintPlay(button, action, isPlaying, say) {
  const shown = isPlaying ? "pause" : action;
  if (button.dataset.action === shown) return;
  button.dataset.action = shown;
  nameButton(button, shown, BUTTONS[action][1], say);
  button.querySelector("path")?.setAttribute("d", isPlaying ? PAUSE : BUTTONS[action][0]);
}
