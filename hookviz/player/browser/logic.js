// What the player decides, without a page: states, texts, keys, playing. The node tests run this file.

// A frame is one step as frames.py writes it: what to say, which elements it is on, which texts it sets.

/** Which steps name an element, and which texts it shows from which step on. */
export function indexFrames(frames) {
  const index = { steps: new Map(), texts: new Map() };
  frames.forEach((frame, step) => {
    for (const id of new Set(frame.on)) listed(index.steps, id).push(step);
    for (const [id, text] of Object.entries(frame.texts)) listed(index.texts, id).push([step, text]);
  });
  return index;
}

function listed(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

/** Given the steps that name the element. */
export function stateAt(steps, step) {
  if (steps.includes(step)) return "now";
  return steps[0] < step ? "done" : "todo";
}

/** Of a box with many steps inside, given as unbroken rows of them: it may also have begun and go on later. */
export function stateIn(spans, step) {
  if (!spans.length || step < spans[0][0]) return "todo";
  if (spans.some(([first, last]) => first <= step && step <= last)) return "now";
  return spans.at(-1)[1] < step ? "done" : "begun";
}

/** The last text set up to a step. */
export function textAt(changes, step) {
  let text = "";
  for (const [from, next] of changes) if (from <= step) text = next;
  return text;
}

/** The old text where it is not the same, else nothing. */
export function wasUnlike(was, now) {
  return was && was !== now ? was : "";
}

/** The step that a click goes to: the next one of these, from the first again after the last. */
export function nextOf(steps, step) {
  return steps.find((other) => other > step) ?? steps[0];
}

/** The steps that put a value on an edge, rather than those that merely mention it. */
export function sendingSteps(frames, steps, id) {
  const sending = steps.filter((step) => `${id}-v` in frames[step].texts);
  return sending.length ? sending : steps;
}

/** The nearest hook's step one way, or where we are. */
export function hookFrom(frames, step, way) {
  for (let at = step + way; at >= 0 && at < frames.length; at += way) {
    if (frames[at].glyph === "hook") return at;
  }
  return step;
}

/** A linked control may send anything: a fraction, a number past the end. */
export function clampStep(step, count) {
  return Math.max(0, Math.min(count - 1, Math.round(step) || 0));
}

/** Where an action leads. Of several passes on one timeline, the ends are those of the one shown, or of both in `pair`. */
export function stepFor(action, frames, step, pair) {
  const isHere = ({ kind }) => pair || kind !== "absent";
  const places = {
    first: frames.findIndex(isHere),
    last: frames.findLastIndex(isHere),
    previous: step - 1,
    next: step + 1,
    previousHook: hookFrom(frames, step, -1),
    nextHook: hookFrom(frames, step, 1),
  };
  return clampStep(places[action] ?? step, frames.length);
}

export const KEYS = {
  ArrowLeft: "previous",
  ArrowRight: "next",
  "[": "previousHook",
  "]": "nextHook",
  Home: "first",
  End: "last",
  " ": "play",
  "?": "help",
  p: "predict",
  b: "stop",
  t: "tensors",
  n: "nodes",
  l: "large",
  f: "full",
  w: "found",
  Escape: "escape",
};

/** What a key asks for, or null where it belongs to the browser or to a control that it activates. */
export function actionOf(event, onControl) {
  if (event.isComposing) return null;
  // Many keyboards type [ and ] through AltGr, which Windows reports as Ctrl+Alt and a Mac as Alt.
  const typed = event.altKey && "[]".includes(event.key);
  if (!typed && (event.ctrlKey || event.metaKey || event.altKey)) return null;
  const key = keyOf(event);
  if (onControl && key === " ") return null;
  if (event.shiftKey && key === "Enter") return "leave";
  return Object.hasOwn(KEYS, key) ? KEYS[key] : null;
}

/** Whether an input method has the key for itself. Safari ends a composition before it reports its last key, by the old number. */
export const isComposing = (event) => Boolean(event.isComposing) || event.keyCode === 229 || event.key === "Process";

/** What keys at these places are called where neither a letter nor a digit is at them. */
const PLACES = { BracketLeft: "[", BracketRight: "]", Slash: "/", Minus: "-", Equal: "=", Space: " " };
const SHIFTED = { Slash: "?", Equal: "+" };
const LATIN = /^[\p{Script=Latin}0-9]$/u;
const LETTER = /^[\p{L}\p{M}\p{Nd}\u3001-\u303f]$/u;

/** What a key is called: the letter, digit or sign that it types, in small letters, or a name such as Home. */
export function keyOf({ key, code = "", shiftKey }) {
  const usual = key.length > 1 ? key : halfWidth(key).toLowerCase();
  return isHidden(usual) ? keyAt(code, shiftKey) || usual : usual;
}

/** Whether only the place of a key tells which it is: an input method has it, or it types a letter that is not Latin. */
function isHidden(key) {
  if (key === "Process" || key === "Unidentified") return true;
  return LETTER.test(key) && !LATIN.test(key);
}

/** What the key at a place is called on the usual keyboard. */
function keyAt(code, shiftKey) {
  const [, letter] = /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(code) ?? [];
  if (letter) return letter.toLowerCase();
  if (shiftKey && Object.hasOwn(SHIFTED, code)) return SHIFTED[code];
  return PLACES[code] ?? code;
}

/** Characters that are as wide as Chinese ones as the usual ones. */
function halfWidth(text) {
  const usual = text.replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0));
  return usual.replaceAll("\u3000", " ");
}

/** A text in small letters and usual characters: a minus sign of another kind is a minus, and so on. */
export function plain(text) {
  const usual = halfWidth(text).replace(/[\u2010-\u2013\u2212\u30fc\ufe63]/g, "-").replace(/[\u3002\uff61]/g, ".");
  return usual.replace(/[\u3001\uff64]/g, ",").replace(/\u221e/g, "inf").toLowerCase();
}

/** What happens when the time of a step is over. */
export function afterPause(step, count) {
  const next = clampStep(step + 1, count);
  return { step: next, playing: next < count - 1 };
}

/** Where playing starts: at the end, from the beginning. */
export function playFrom(step, count) {
  return step >= count - 1 ? 0 : step;
}

/** How long a step stays, in milliseconds. */
export function pauseAt(speed) {
  return 1200 / (speed > 0 ? speed : 1);
}

/** The kinds of step that occur, in the order in which they first do; a seed is told as a node. */
export const kindsOf = (frames) => [...new Set(frames.map(kindOf))];
export const kindOf = ({ glyph }) => glyph.replace("seed", "node");

/** A sentence with its places filled. A key that is missing shows itself, so that it is noticed. */
export function say(words, key, values = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place));
}

/** A hook's source as numbered lines. */
export function sourceLines({ source, first, mark }) {
  const lines = source.replace(/\s+$/, "").split("\n");
  return lines.map((text, i) => ({ number: first + i, text, marked: first + i === mark }));
}

/** One card a value that is known. */
export function cardsOf(frame) {
  const both = ["before", "after"].map((when) => ({ label: frame[`${when}_label`], value: frame[when] }));
  return both.filter((card) => card.value !== null);
}

/** Whether a value is one number or so, or a matrix. */
export function sizeOf(value) {
  if (value.includes("\n") || value.length > 14) return "many";
  return value.length > 9 ? "some" : "one";
}

/** A long sentence is set smaller, so that the values below it stay on the screen. */
export function sizeOfSentence(sentence) {
  if (sentence.length > 120) return "hv-longer";
  return sentence.length > 64 ? "hv-long" : "";
}

/** How large to draw a picture: whole or at least as wide as its pane, if its letters are not too small then; else to be read. */
export function scaleFor(picture, { width, height, smallest = 12, least = smallest }) {
  const [wide, whole] = [width / picture.width, Math.min(width / picture.width, height / picture.height, 1.6)];
  const readable = smallest / picture.smallest;
  if (whole * picture.smallest >= least) return whole;
  return wide * picture.smallest >= least ? Math.min(wide, readable) : readable;
}

/** Jupyter's word counts, then an editor's, Colab's or Furo's (the theme of our site), then the system's. */
export function isDark({ jupyter, editor = "", colab, furo = "auto", system }) {
  if (jupyter) return jupyter === "false";
  if (/\bvscode-(dark|light|high-contrast)/.test(editor)) return !editor.includes("light");
  if (colab) return colab === "dark";
  return furo === "auto" ? system : furo === "dark";
}
