// The keys of the player: which key asks for what, also on keyboards that type other letters. The node tests run this file.

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
  "?": "help",
  "/": "search",
  "+": "closer",
  "=": "closer",
  "-": "farther",
  p: "predict",
  b: "breakpoint",
  t: "tensors",
  n: "nodes",
  l: "large",
  f: "full",
  w: "findings",
  e: "enter",
  u: "leaveBox",
  c: "norms",
  g: "group",
  s: "split",
  Escape: "escape",
  ...Object.fromEntries(DIGITS.map((digit) => [digit, `digit${digit}`])),
};

/** What the list of keys shows: the name of each entry's texts, and the action without which it is left out. */
export const HELP = [
  ["step", "next"],
  ["hook", "nextHook"],
  ["ends", "first"],
  ["play", "play"],
  ["predict", "predict"],
  ["answer", "predict"],
  ["stop", "breakpoint"],
  ["switch", "split"],
  ["layers", "tensors"],
  ["found", "findings"],
  ["box", "enter"],
  ["search", "search"],
  ["norms", "norms"],
  ["zoom", "closer"],
  ["group", "group"],
  ["large", "large"],
  ["full", "full"],
  ["help", "help"],
  ["tab", "next"],
  ["close", "escape"],
];

/**
 * What a key asks for, or null where it belongs to the browser or to a control that it activates.
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
  if (event.shiftKey && key === "Enter") return "leave";
  return Object.hasOwn(KEYS, key) ? KEYS[key] : null;
}

/**
 * The digit that an action stands for; 0 for none.
 * @param {string | null} action
 */
export const digitOf = (action) => Number(/^digit(.)$/.exec(action ?? "")?.[1] ?? 0);

/**
 * Whether an input method has the key for itself. Safari ends a composition before it reports its last key, by the old
 * number.
 * @param {Pick<Key, "isComposing" | "keyCode" | "key">} event
 */
export const isComposing = (event) => Boolean(event.isComposing) || event.keyCode === 229 || event.key === "Process";

/** What keys at these places are called where neither a letter nor a digit is at them. */
/** @type {{ [code: string]: string }} */
const KEYS_BY_CODE = { BracketLeft: "[", BracketRight: "]", Slash: "/", Minus: "-", Equal: "=", Space: " " };
/** @type {{ [code: string]: string }} */
const SHIFTED_KEYS = { Slash: "?", Equal: "+" };
const LATIN = /^[\p{Script=Latin}0-9]$/u;
const LETTER = /^[\p{L}\p{M}\p{Nd}\u3001-\u303f]$/u;

/**
 * What a key is called: the letter, digit or sign that it types, in small letters, or a name such as Home.
 * @param {Pick<Key, "key" | "shiftKey"> & { code?: string }} event
 */
export function keyOf({ key, code = "", shiftKey }) {
  const usual = key.length > 1 ? key : toHalfWidth(key).toLowerCase();
  return isKnownByCodeOnly(usual) ? keyAtCode(code, shiftKey) || usual : usual;
}

/**
 * Whether only the place of a key says which it is: an input method has it, or it types a letter that is not Latin.
 * @param {string} key
 */
function isKnownByCodeOnly(key) {
  if (key === "Process" || key === "Unidentified") return true;
  return LETTER.test(key) && !LATIN.test(key);
}

/**
 * What the key at a place is called on the usual keyboard.
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
 * Characters that are as wide as Chinese ones as the usual ones.
 * @param {string} text
 */
function toHalfWidth(text) {
  const usual = text.replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0));
  return usual.replaceAll("\u3000", " ");
}

/**
 * A text in small letters and usual characters: a minus sign of another kind is a minus, and so on.
 * @param {string} text
 */
export function normalizeText(text) {
  const usual = toHalfWidth(text).replace(/[\u2010-\u2013\u2212\u30fc\ufe63]/g, "-").replace(/[\u3002\uff61]/g, ".");
  return usual.replace(/[\u3001\uff64]/g, ",").replace(/\u221e/g, "inf").toLowerCase();
}
