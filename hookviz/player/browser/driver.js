// Moves the model, and plays it. Rules may have a word in where it goes, and hear when it is there.

import { atEnd } from "./dom.js";
import { afterPause, clampStep, pauseAt, playFrom, stepFor } from "./stepping.js";

/** @import { Changes, Driver, Model, Position, Rule, Step } from "./types" */

/** The movements that the driver knows. */
export const MOVEMENTS = ["first", "previous", "next", "last", "previousHook", "nextHook", "play"];

/**
 * @param {Model} model
 * @param {Step[]} steps
 * @param {boolean} isSideBySide whether two runs are shown
 * @param {AbortSignal} signal
 * @returns {Driver}
 */
export function makeDriver(model, steps, isSideBySide, signal) {
  const count = steps.length;
  const position = () => ({
    step: clampStep(model.get("step"), count),
    count,
    playing: model.get("playing"),
    speed: model.get("speed"),
  });
  /** @type {Rule[]} */
  const rules = [];
  /** @param {Changes} changes */
  const put = (changes) => {
    const allowed = rules.reduce((wanted, rule) => rule.limit(wanted, position()), changes);
    // Setting paints, since the views listen to the model; only then is the kernel told.
    for (const [name, value] of Object.entries(allowed)) model.set(/** @type {keyof Changes} */ (name), value);
    model.save_changes();
    for (const rule of rules) rule.settle?.();
  };
  /** @param {number} step */
  const go = (step) => put({ step });
  const play = () => {
    const { step, playing } = position();
    put(playing ? { playing: false } : { step: playFrom(step, count), playing: true });
  };
  /** @type {Driver["onChange"]} */
  const onChange = (events, act) => {
    for (const event of events.split(" ")) {
      model.on(event, act);
      atEnd(signal, () => model.off(event, act));
    }
  };
  keepTime(position, put, onChange, signal);
  /** @param {string} action */
  const act = (action) => (action === "play" ? play() : go(stepFor(action, steps, position().step, isSideBySide)));
  return { position, go, put, act, onChange, rules };
}

/**
 * Every view of a model has a timer, set anew at each change: the first to ring moves the model and so resets the others.
 * @param {() => Position} position
 * @param {(changes: Changes) => void} put
 * @param {Driver["onChange"]} onChange
 * @param {AbortSignal} signal
 */
function keepTime(position, put, onChange, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const arm = () => {
    clearTimeout(timer);
    const { step, count, playing, speed } = position();
    if (playing) timer = setTimeout(() => put(afterPause(step, count)), pauseAt(speed));
  };
  onChange("change:step change:playing change:speed", arm);
  atEnd(signal, () => clearTimeout(timer));
  arm();
}
