// The buttons below the timeline, and the list of keys.

import { say } from "./logic.js";
import { listen, make, mark, shape, textButton } from "./dom.js";

const ICONS = {
  first: "M-6,-6V6M6,-6L-3,0L6,6z",
  previous: "M4,-6L-5,0L4,6z",
  play: "M-4,-6L5,0L-4,6z",
  pause: "M-4,-6V6M4,-6V6",
  next: "M-4,-6L5,0L-4,6z",
  last: "M-6,-6L3,0L-6,6zM6,-6V6",
};

/** A press acts by the name of an action, as a key does. */
export function makeControls({ words, act, between, after, signal }) {
  const pane = make("div", "hv-controls");
  const buttons = make("div", "hv-buttons");
  const press = (action) => iconButton(action, words, () => act(action), signal);
  const [first, previous, play, next, last] = ["first", "previous", "play", "next", "last"].map(press);
  const help = textButton("?", () => act("help"), signal);
  mark(help, { "aria-label": say(words, "help") });
  help.classList.add("hv-help-button");
  play.classList.add("hv-play");
  buttons.append(first, previous, play, next, last);
  pane.append(buttons, ...between, ...after, help);
  const paint = ({ step, count, playing }) => {
    // Not the disabled attribute: it would throw away the focus of the one who pressed the button.
    for (const button of [first, previous]) mark(button, { "aria-disabled": step <= 0 });
    for (const button of [next, last]) mark(button, { "aria-disabled": step >= count - 1 });
    paintPlay(play, playing ? "pause" : "play", words);
  };
  return { pane, paint };
}

function iconButton(action, words, act, signal) {
  const button = textButton("", act, signal);
  dress(button, action, words);
  return button;
}

function dress(button, action, words) {
  const label = say(words, action);
  mark(button, { "aria-label": label, title: label });
  button.replaceChildren(shape(ICONS[action], "hv-icon"));
}

function paintPlay(button, action, words) {
  if (button.dataset.action === action) return;
  button.dataset.action = action;
  dress(button, action, words);
  button.append(make("span", "", say(words, action)));
}

/** A dialog of the browser's own keeps the focus inside, and gives it back on closing. */
export function makeHelp({ words, signal }) {
  const dialog = make("dialog", "hv-help", "", { "aria-label": say(words, "help") });
  const list = make("dl");
  const every = ["step", "hook", "ends", "play", "predict", "answer", "stop", "switch", "layers", "found", "box", "search", "norms", "zoom", "group", "large", "full", "help", "tab", "close"];
  // A key that has no words does nothing in this player.
  for (const key of every.filter((name) => words[`keys_${name}`])) {
    const keys = make("dt");
    keys.append(...say(words, `keys_${key}`).split(" ").map((name) => make("kbd", "", name)));
    list.append(keys, make("dd", "", say(words, `does_${key}`)));
  }
  const close = textButton(say(words, "close"), () => dialog.close(), signal);
  // It has the focus, and so is in sight: first, lest a list too long for the screen begins at its end.
  dialog.append(close, make("p", "hv-help-title", say(words, "help")), list);
  // A click on the dialog itself, not on what it holds, is one beside its contents.
  listen(dialog, "click", (event) => event.target === dialog && dialog.close(), signal);
  return { dialog, toggle: () => (dialog.open ? dialog.close() : open(dialog)) };
}

/** In the middle of the player, not of the page: the player may stand beside a side bar. */
function open(dialog) {
  const { left, width } = dialog.parentElement.getBoundingClientRect();
  dialog.style.left = `${left + width / 2}px`;
  dialog.showModal();
}
