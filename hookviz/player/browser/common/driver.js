// Moves the model from step to step, and plays it. Rules can limit a move, and are notified after it.

import { onAbort } from "./dom.js";
import { positionAfterPause, clampStep, pauseMilliseconds, playStart, targetStep } from "./stepping.js";

/** @import { Changes, Driver, Model, Position, Rule, Step } from "./types" */

/** The names of the movements. */
export const MOVEMENTS = ["first", "previous", "next", "last", "previousHook", "nextHook", "play", "playHooks"];

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
    hooksOnly: model.get("hooks_only"),
    speed: model.get("speed"),
  });
  /** @type {Rule[]} */
  const rules = [];
  /** @param {Changes} changes */
  const setTraits = (changes) => {
    const allowed = rules.reduce((wanted, rule) => rule.limit(wanted, position()), changes);
    // Views listen to the model and paint at once; the kernel is notified after that.
    for (const [name, value] of Object.entries(allowed)) model.set(/** @type {keyof Changes} */ (name), value);
    model.save_changes();
    for (const rule of rules) rule.afterChange?.();
  };
  /** @param {number} step */
  const goTo = (step) => setTraits({ step });
  /** @param {boolean} isHooksOnly */
  const play = (isHooksOnly) => {
    const { step, playing, hooksOnly } = position();
    const isPlayingSo = playing && hooksOnly === isHooksOnly;
    setTraits(isPlayingSo ? { playing: false } : { step: playStart(step, count), playing: true, hooks_only: isHooksOnly });
  };
  /** @type {Driver["onChange"]} */
  const onChange = (events, act) => {
    for (const event of events.split(" ")) {
      model.on(event, act);
      onAbort(signal, () => model.off(event, act));
    }
  };
  schedulePlayback(steps, position, setTraits, onChange, signal);
  /** @param {string} action */
  const move = (action) => {
    if (action.startsWith("play")) play(action === "playHooks");
    else goTo(targetStep(action, steps, position().step, isSideBySide));
  };
  return { position, goTo, setTraits, move, onChange, rules };
}

/**
 * Plays the model. Each view has a timer that restarts at every change, so the first timer that ends restarts the others.
 * @param {Step[]} steps
 * @param {() => Position} position
 * @param {(changes: Changes) => void} setTraits
 * @param {Driver["onChange"]} onChange
 * @param {AbortSignal} signal
 */
function schedulePlayback(steps, position, setTraits, onChange, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const arm = () => {
    clearTimeout(timer);
    const { step, playing, hooksOnly, speed } = position();
    if (playing) timer = setTimeout(() => setTraits(positionAfterPause(steps, step, hooksOnly)), pauseMilliseconds(speed));
  };
  onChange("change:step change:playing change:speed", arm);
  onAbort(signal, () => clearTimeout(timer));
  arm();
}
