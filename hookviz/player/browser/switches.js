// What if: each hook is a switch, which shows the pass that was recorded without it. And two passes beside each other.

import { KEYS, say } from "./logic.js";
import { flip, offAt } from "./variants.js";
import { keyed, legible, listen, make, mark, textButton } from "./dom.js";

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
Object.assign(KEYS, { s: "split", ...Object.fromEntries(DIGITS.map((key) => [key, `flip${key}`])) });

/** What the pins of a picture need to know: whether one is a switch, and whether its hook is off. */
export function switchPins(model) {
  const rows = (model.get("switches") ?? []).map((one) => one.rows);
  const off = offAt(model.get("combinations") ?? {}, model.get("shown"));
  const placeOf = (id) => rows.findIndex((numbers) => numbers.some((row) => id.endsWith(`-p${row}`)));
  const isOffAt = (place) => off.includes(place);
  return { placeOf, isOffAt, isOff: (id) => isOffAt(placeOf(id)), off: say(model.get("words"), "off") };
}

/** A row of switches, one a hook; the pins in the picture flip them, too. */
export function makeSwitches({ model, words, panel, driver, root, signal }) {
  const pane = make("div", "hv-switches", "", { role: "group", "aria-label": say(words, "switches") });
  const [switches, pins] = [model.get("switches") ?? [], switchPins(model)];
  const act = (place) => {
    if (!switches[place]) return;
    const { shown, alone } = flip(model.get("combinations"), model.get("shown"), place);
    root.dataset.told = alone ? "flip_alone" : "";
    driver.put({ shown, flipped: true });
  };
  const split = () => model.get("variants")?.length && driver.put({ split: !model.get("split") });
  pane.hidden = !model.get("variants")?.length;
  if (switches.length) pane.append(make("span", "hv-label", say(words, "switches")));
  switches.forEach((one, place) => pane.append(hookSwitch(one, place, !pins.isOffAt(place), () => act(place), signal)));
  pane.append(splitButton(model, words, split, signal));
  listen(root, "click", ({ target }) => act(pins.placeOf(target.closest(".hv-switch-pin")?.dataset.id ?? "")), signal);
  /** Once everything stands: what the last flip has to say. */
  const greet = () => {
    if (root.dataset.told) panel.tell(say(words, root.dataset.told));
    root.dataset.told = "";
  };
  // While one predicts, digits are answers, also where nothing is asked.
  const flips = DIGITS.map((key) => [`flip${key}`, () => model.get("predict") || act(key - 1)]);
  return { pane, greet, actions: { split, ...Object.fromEntries(flips) } };
}

function hookSwitch({ label, on }, place, isOn, act, signal) {
  const button = textButton("", act, signal);
  mark(button, { role: "switch", "aria-checked": isOn, "data-key": `switch ${place}` });
  button.classList.add("hv-switch");
  // A long name is cut in the row of switches: the whole is there for the pointer.
  const named = (name, text) => make("span", name, text, { title: legible(text) });
  button.append(make("span", "hv-knob"), named("hv-user", label), named("hv-switch-on", on));
  return place < 9 ? keyed(button, place + 1) : button;
}

function splitButton(model, words, act, signal) {
  const button = keyed(textButton(say(words, "split"), act, signal), "S");
  mark(button, { "aria-pressed": Boolean(model.get("split")), "data-key": "split" });
  return button;
}
