// The keys of the player and their actions, also on keyboards without Latin letters. The node tests run this file.

/** @typedef {Pick<KeyboardEvent, "key" | "code" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey" | "isComposing" | "keyCode">} Key */

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** @type {{ [key: string]: string }} */
export const KEYS = {
  ArrowLeft: "previous",
  ArrowRight: "next",
  "[": "previousHook",
  "]": "nextHook",
  Home: "first",
  End: "last",
  " ": "play",
  h: "playHooks",
  "?": "help",
  "/": "search",
  "+": "zoomIn",
  "=": "zoomIn",
  "-": "zoomOut",
  z: "fit",
  p: "predict",
  r: "room",
  b: "breakpoint",
  t: "tensors",
  l: "large",
  f: "full",
  w: "findings",
  e: "enter",
  u: "leaveBox",
  c: "norms",
  v: "plots",
  s: "split",
  Escape: "escape",
  ...Object.fromEntries(DIGITS.map((digit) => [digit, `digit${digit}`])),
};

/** With Shift, arrows pan the picture, and Enter leaves the player. @type {{ [key: string]: string }} */
const SHIFTED_ACTIONS = { Enter: "leave", ArrowLeft: "panLeft", ArrowRight: "panRight", ArrowUp: "panUp", ArrowDown: "panDown" };

/** The entries of the list of keys: the name of the texts, and the action without which the entry is left out. */
export const HELP = [
  ["step", "next"],
  ["hook", "nextHook"],
  ["ends", "first"],
  ["play", "play"],
  ["hooks", "playHooks"],
  ["predict", "predict"],
  ["answer", "predict"],
  ["room", "room"],
  ["stop", "breakpoint"],
  ["switch", "split"],
  ["layers", "tensors"],
  ["found", "findings"],
  ["box", "enter"],
  ["search", "search"],
  ["norms", "norms"],
  ["plots", "plots"],
  ["fit", "fit"],
  ["picture", "zoomIn"],
  ["large", "large"],
  ["full", "full"],
  ["help", "help"],
  ["tab", "next"],
  ["close", "escape"],
];

/**
 * Returns the action of a key; null if the key belongs to the browser, or activates the focused control.
 * @param {Key} event
 * @param {boolean} [onControl]
 * @returns {string | null}
 */
export function actionOf(event, onControl = false) {
  if (event.isComposing) return null;
  // Many keyboards type [ and ] through AltGr, which Windows reports as Ctrl+Alt and a Mac as Alt.
  const typed = event.altKey && "[]".includes(event.key);
  if (!typed && (event.ctrlKey || event.metaKey || event.altKey)) return null;
  const key = keyOf(event);
  if (onControl && key === " ") return null;
  if (event.shiftKey && Object.hasOwn(SHIFTED_ACTIONS, key)) return SHIFTED_ACTIONS[key];
  return Object.hasOwn(KEYS, key) ? KEYS[key] : null;
}

/**
 * Returns the digit of an action; 0 for other actions.
 * @param {string | null} action
 */
export const digitOf = (action) => Number(/^digit(.)$/.exec(action ?? "")?.[1] ?? 0);

/**
 * Returns whether an input method handles the key. Safari reports the last key after the composition ended, with the
 * legacy key code 229.
 * @param {Pick<Key, "isComposing" | "keyCode" | "key">} event
 */
export const isComposing = (event) => Boolean(event.isComposing) || event.keyCode === 229 || event.key === "Process";

/** The characters of keys that have neither a letter nor a digit, on a US keyboard. */
/** @type {{ [code: string]: string }} */
const KEYS_BY_CODE = { BracketLeft: "[", BracketRight: "]", Slash: "/", Minus: "-", Equal: "=", Space: " " };
/** @type {{ [code: string]: string }} */
const SHIFTED_KEYS = { Slash: "?", Equal: "+" };
const LATIN = /^[\p{Script=Latin}0-9]$/u;
const LETTER = /^[\p{L}\p{M}\p{Nd}\u3001-\u303f]$/u;

/**
 * Returns the name of a key: the character that it types, in lower case, or a name such as Home.
 * @param {Pick<Key, "key" | "shiftKey"> & { code?: string }} event
 */
export function keyOf({ key, code = "", shiftKey }) {
  const usual = key.length > 1 ? key : toHalfWidth(key).toLowerCase();
  return isKnownByCodeOnly(usual) ? keyAtCode(code, shiftKey) || usual : usual;
}

/**
 * Returns whether only the code identifies a key: an input method handles it, or it types a letter that is not Latin.
 * @param {string} key
 */
function isKnownByCodeOnly(key) {
  if (key === "Process" || key === "Unidentified") return true;
  return LETTER.test(key) && !LATIN.test(key);
}

/**
 * Returns the name of the key with a code on a US keyboard.
 * @param {string} code
 * @param {boolean} shiftKey
 */
function keyAtCode(code, shiftKey) {
  const [, letter] = /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(code) ?? [];
  if (letter) return letter.toLowerCase();
  if (shiftKey && Object.hasOwn(SHIFTED_KEYS, code)) return SHIFTED_KEYS[code];
  return KEYS_BY_CODE[code] ?? code;
}

/**
 * Replaces full-width characters by ASCII.
 * @param {string} text
 */
function toHalfWidth(text) {
  const usual = text.replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0));
  return usual.replaceAll("\u3000", " ");
}

/**
 * Returns a text in lower case, with ASCII in place of full-width characters and other minus signs, dots and commas.
 * @param {string} text
 */
export function normalizeText(text) {
  const usual = toHalfWidth(text).replace(/[\u2010-\u2013\u2212\u30fc\ufe63]/g, "-").replace(/[\u3002\uff61]/g, ".");
  return usual.replace(/[\u3001\uff64]/g, ",").replace(/\u221e/g, "inf").toLowerCase();
}
