// The buttons below the timeline.

import { makeElement, makeShape, makeTextButton, setAttributes } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Context, Position } from "../common/types" */

/** @type {{ [action: string]: string }} */
const ICONS = {
  first: "M-6,-6V6M6,-6L-3,0L6,6z",
  previous: "M4,-6L-5,0L4,6z",
  play: "M-4,-6L5,0L-4,6z",
  pause: "M-4,-6V6M4,-6V6",
  next: "M-7,0H3M-1,-6L7,0L-1,6z",
  last: "M-6,-6L3,0L-6,6zM6,-6V6",
};

/**
 * Makes the buttons. A press carries out the same action as the key.
 * @param {Context} context
 * @param {(action: string) => void} act
 * @param {HTMLElement[]} between
 * @param {HTMLElement[]} after
 */
export function makeControls({ say, signal }, act, between, after) {
  const pane = makeElement("div", "hv-controls");
  const buttons = makeElement("div", "hv-buttons");
  /** @param {string} action */
  const press = (action) => makeIconButton(action, say, () => act(action), signal);
  const [first, previous, play, next, last] = ["first", "previous", "play", "next", "last"].map(press);
  const help = makeTextButton("?", () => act("help"), signal);
  setAttributes(help, { "aria-label": say("help") });
  help.classList.add("hv-help-button");
  play.classList.add("hv-play");
  next.classList.add("hv-step-button");
  next.append(makeElement("span", "", say("next")));
  // The button that a beginner needs is the first one.
  buttons.append(next, first, previous, play, last);
  pane.append(buttons, ...between, ...after, help);
  /** @param {Position} position */
  const paint = ({ step, count, playing }) => {
    // Not the disabled attribute: a disabled button loses the focus.
    for (const button of [first, previous]) setAttributes(button, { "aria-disabled": step <= 0 });
    for (const button of [next, last]) setAttributes(button, { "aria-disabled": step >= count - 1 });
    paintPlay(play, playing ? "pause" : "play", say);
  };
  return { pane, paint };
}

/**
 * @param {string} action
 * @param {Say} say
 * @param {() => void} act
 * @param {AbortSignal} signal
 */
function makeIconButton(action, say, act, signal) {
  const button = makeTextButton("", act, signal);
  showIcon(button, action, say);
  return button;
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} action
 * @param {Say} say
 */
function showIcon(button, action, say) {
  const label = say(`${action}`);
  setAttributes(button, { "aria-label": label, title: label });
  button.replaceChildren(makeShape(ICONS[action], "hv-icon"));
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} action
 * @param {Say} say
 */
function paintPlay(button, action, say) {
  if (button.dataset.action === action) return;
  button.dataset.action = action;
  showIcon(button, action, say);
  button.append(makeElement("span", "", say(`${action}`)));
}
