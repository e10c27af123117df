// What moves at a step: pills with numbers, and their trips in the picture. The node tests run this file.

import { nearestHookStep, textAt } from "../common/stepping.js";

/** @import { PictureText, StepWords, View } from "../common/payload" */
/** @import { Step } from "../common/types" */

/** @typedef {{ text: string, dx?: number, dy?: number }} Place the number in a text of the picture, and a distance from it */

/**
 * @typedef {object} Trip a pill that moves, or stays, for some time
 * @property {string} number what is written on it; empty: a dot
 * @property {string} look its CSS class
 * @property {Place | null} from null: where the arrow starts
 * @property {Place | null} to null: where the arrow ends
 * @property {string} arrow the arrow along which it moves; empty: a straight line
 * @property {number} start milliseconds at the speed 1×
 * @property {number} length milliseconds at the speed 1×
 * @property {string[]} reveals texts that stay hidden until it has arrived
 */

/** @typedef {{ trips: Trip[], light: { start: number, length: number } | null }} Plan `light`: when the line of the hook lights up */

/**
 * @typedef {object} Moment a step, and what the plan needs to know about it
 * @property {View} view
 * @property {Step[]} steps
 * @property {number} step
 * @property {string} effect what the hook of the step did; empty if it is not known
 * @property {(id: string) => boolean} isDrawn whether the picture has a text; a layer may lack it
 * @property {(id: string) => string} textOf the id of the text with an arrow's gradient, or of the gradient on the box of a pin
 */

/** Durations in milliseconds at the speed 1×; together they are shorter than the pause between two steps. */
const [TRIP, ENTER, TURN, MEET, STAMP] = [350, 250, 200, 450, 300];
/** A sum with more characters is written without its addends. */
const MAX_SUM = 26;

/**
 * Returns whether a change of the step is shown as motion: a move to the next step, or forward to the next hook.
 * @param {Step[]} steps
 * @param {number} before
 * @param {number} step
 */
export const isForward = (steps, before, step) => step > before && (step === before + 1 || nearestHookStep(steps, before, 1) === step);

/**
 * Returns the numbers in a text: those before and after a change, or twice the same; a text without words is a number.
 * @param {PictureText | undefined} text
 */
export function numbersOf([, text, numbers] = [0, "", []]) {
  const [before, after = before] = numbers.length ? numbers : [text];
  return { before, after };
}

/**
 * Plans the motion of a step. Pills show only numbers that the picture and the panel show at this step, none of a later
 * step. A gradient travels along an arrow once: to the number on the arrow when a node sends it, and from there when
 * it arrives. If the arrow shows no number, it travels all the way when it arrives.
 * @param {Moment} moment
 * @returns {Plan}
 */
export function planMotion(moment) {
  const { kind, glyph } = moment.steps[moment.step];
  return glyph === "hook" ? planHook(moment) : { trips: PLANS[kind]?.(moment) ?? [], light: null };
}

/**
 * What a hook did → the looks of the pills with the number before and after, while they are in the pin.
 * @type {{ [effect: string]: string[] }}
 */
const TURNS = {
  kept: ["hv-fades", ""],
  edited: ["hv-edited hv-fades", "hv-edited hv-writes"],
  replaced: ["hv-sinks", "hv-replaced hv-pops"],
};

/** Kind of a step → the function that plans its trips. @type {{ [kind: string]: (moment: Moment) => Trip[] }} */
const PLANS = {
  seed: planDrop,
  call: planDrop,
  compute: planSending,
  arrive: planArrival,
  accumulate: planStamp,
  retain_grad: planStoring,
  forward: planDrop,
};

/**
 * @param {string} number
 * @param {Partial<Trip>} trip
 * @returns {Trip}
 */
const makeTrip = (number, trip) => ({ number, look: "", from: null, to: null, arrow: "", start: 0, length: TRIP, reveals: [], ...trip });

/**
 * Returns the texts that the step writes, apart from those of pins.
 * @param {Moment} moment
 */
function writtenTexts({ view, step, isDrawn }) {
  const onPins = new Set(Object.values(view.pins).map(({ value }) => value));
  return Object.keys(view.texts).filter((id) => !onPins.has(id) && isDrawn(id) && writes(view, id, step));
}

/**
 * @param {View} view
 * @param {string} id
 * @param {number} step
 */
const writes = (view, id, step) => view.texts[id]?.some(([from]) => from === step);

/**
 * Returns the numbers of a text at a step.
 * @param {Moment} moment
 * @param {string} id
 * @param {number} [step]
 */
const numbersAt = ({ view, ...moment }, id, step = moment.step) => numbersOf(textAt(view.texts[id] ?? [], step));

/**
 * A number comes from above: the seed, or the input or output of a module.
 * @param {Moment} moment
 */
function planDrop(moment) {
  const [text] = writtenTexts(moment);
  if (!text) return [];
  return [makeTrip(numbersAt(moment, text).after, { look: "hv-drops", from: { text, dy: -34 }, to: { text }, reveals: [text] })];
}

/**
 * A node sends gradients: to the numbers on its arrows, or to a closed box, whose inside the picture does not show.
 * @param {Moment} moment
 */
function planSending(moment) {
  const { view, step, textOf } = moment;
  const sent = Object.keys(view.arrows).filter((arrow) => view.steps[arrow]?.includes(step));
  return sent.flatMap((arrow) => {
    const text = textOf(arrow);
    if (writes(view, text, step)) return [makeTrip(numbersAt(moment, text).after, { arrow, to: { text }, reveals: [text] })];
    return view.arrows[arrow][1] in view.spans ? [makeTrip("", { arrow })] : [];
  });
}

/**
 * Gradients arrive at a node; several meet there, and their sum appears.
 * @param {Moment} moment
 */
function planArrival(moment) {
  const { view, step } = moment;
  const [target] = writtenTexts(moment);
  const box = Object.keys(view.steps).find((id) => view.steps[id].includes(step));
  if (!target || !box) return [];
  const sum = numbersAt(moment, target).after;
  const arriving = findContributions(moment, box);
  const isSum = arriving.length > 1;
  const trips = arriving.map(({ arrow, text, number }) => makeTrip(number || (isSum ? "" : sum), {
    arrow, from: number ? { text } : null, to: { text: target }, reveals: isSum ? [] : [target],
  }));
  if (!isSum) return trips;
  const text = writeSum(arriving.map(({ number }) => number), sum);
  return [...trips, makeTrip(text, stay(target, { look: "hv-sum", start: TRIP, length: MEET, reveals: [target] }))];
}

/**
 * Returns a sum as a text, with its addends if they are known and short.
 * @param {string[]} addends
 * @param {string} sum
 */
function writeSum(addends, sum) {
  const text = `${addends.join(" + ")} = ${sum}`;
  return addends.every(Boolean) && text.length <= MAX_SUM ? text : sum;
}

/**
 * Returns what makes a pill stay at a text.
 * @param {string} text
 * @param {Partial<Trip>} trip
 * @returns {Partial<Trip>}
 */
const stay = (text, trip) => ({ from: { text }, to: { text }, ...trip });

/**
 * Returns the arrows along which gradients have come to a box since it last computed, with the numbers on them. If they
 * are more than the panel lists, as for a node with several outputs, those that have the same numbers.
 * @param {Moment} moment
 * @param {string} box
 */
function findContributions(moment, box) {
  const { view, steps, step, textOf } = moment;
  const last = view.steps[box].findLast((at) => at < step && ["compute", "accumulate"].includes(steps[at].kind)) ?? -1;
  const leading = Object.keys(view.arrows).filter((id) => view.arrows[id][1] === box);
  const sent = leading.filter((id) => view.steps[id]?.some((at) => last < at && at < step));
  const all = sent.map((arrow) => ({ arrow, text: textOf(arrow), number: numbersAt(moment, textOf(arrow)).after }));
  const { words } = steps[step];
  if (!words || all.length === Math.max(1, words.gradients.length)) return all;
  const listed = [...words.gradients.map(([, value]) => value), words.after];
  return all.filter(({ number }) => listed.includes(number));
}

/**
 * `.grad` is written; if there is one already, both meet first.
 * @param {Moment} moment
 */
function planStamp(moment) {
  const { steps, step } = moment;
  const [text] = writtenTexts(moment);
  if (!text) return [];
  const number = numbersAt(moment, text).after;
  const before = steps[step].words?.before;
  const look = { look: "hv-stamp", reveals: [text] };
  if (!before) return [makeTrip(number, stay(text, { ...look, length: STAMP }))];
  const addends = [before, numbersAt(moment, text, step - 1).after];
  const sum = makeTrip(writeSum(addends, number), stay(text, { ...look, start: TRIP, length: MEET }));
  return [...addends.map((addend, i) => makeTrip(addend, { look: "hv-drops", from: { text, dy: i ? -30 : 30 }, to: { text } })), sum];
}

/**
 * `retain_grad` stores the gradient of the box.
 * @param {Moment} moment
 */
function planStoring(moment) {
  const { view, step, textOf } = moment;
  const pin = Object.keys(view.pins).find((id) => view.steps[id]?.includes(step));
  if (!pin) return [];
  const text = view.pins[pin].value;
  const number = numbersAt(moment, text).after;
  return [
    makeTrip(number, { from: { text: textOf(pin) }, to: { text }, length: ENTER }),
    makeTrip(number, stay(text, { look: "hv-stamp", start: ENTER, length: STAMP, reveals: [text] })),
  ];
}

/**
 * A hook runs: the number goes into its pin, and comes out as the hook returned it. An edited number changes on its
 * pill; a replaced one stays in the pin, and another pill comes out.
 * @param {Moment} moment
 * @returns {Plan}
 */
function planHook(moment) {
  const { view, step, effect } = moment;
  const pin = Object.keys(view.pins).find((id) => view.steps[id]?.includes(step) && writes(view, view.pins[id].value, step));
  if (!pin) return { trips: [], light: null };
  const { value } = view.pins[pin];
  const { before, after } = numbersAt(moment, value);
  const change = effect in TURNS ? effect : before === after ? "kept" : "replaced";
  const trips = writtenTexts(moment).flatMap((text) => [
    makeTrip(numbersAt(moment, text, step - 1).after || before, { from: { text }, to: { text: value }, length: ENTER }),
    makeTrip(numbersAt(moment, text).after, {
      look: TURNS[change][1].split(" ")[0], from: { text: value }, to: { text }, start: ENTER + TURN, length: ENTER, reveals: [text],
    }),
  ]);
  const turn = TURNS[change].map((look, i) => (
    makeTrip(i ? after : before, stay(value, { look, start: ENTER, length: TURN, reveals: i ? [value] : [] }))));
  return { trips: [...trips, ...turn], light: { start: ENTER, length: TURN + ENTER } };
}
