// The code pane: the user's own lines, with an arrow on the one that runs and a bar at the one that made the tensor.

import { escapeBidi, makeElement, makeShape, onAbort } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { SourceText, StepWords } from "../common/payload" */
/** @import { Context } from "../common/types" */

/** The rows of code that are in sight in any case. */
const LEAST_ROWS = 2;

const ARROW = "M-7,0H3M-1,-6L7,0L-1,6z";

export class CodePane {
  /** @param {Context} context */
  constructor({ content, say, signal }) {
    this.sources = content.sources ?? [];
    const label = say("code");
    // Keys scroll long code, so the list can have the focus.
    this.list = makeElement("ol", "hv-code", "", { tabindex: 0, "aria-label": label });
    this.title = makeElement("span");
    this.note = makeElement("p", "hv-code-note");
    this.pane = makeElement("div", "hv-program");
    const head = makeElement("p", "hv-code-title");
    const [runs, made] = ["code_runs", "code_made"].map((key) => makeElement("span", "hv-code-key", say(key)));
    runs.prepend(makeShape(ARROW, "hv-code-arrow"));
    made.prepend(makeElement("i"));
    head.append(makeElement("strong", "", label), this.title, runs, made);
    this.pane.append(head, this.list, this.note);
    this.pane.hidden = true;
    // The same height in every step: that of the longest text, as far as the panel has room.
    const longest = Math.max(0, ...this.sources.map(({ text }) => splitLines(text).length));
    this.pane.style.setProperty("--hv-lines", String(longest));
    // The list gets its height once it is visible, and another one in a smaller window.
    const observer = new ResizeObserver(() => this.#reveal());
    observer.observe(this.list);
    onAbort(signal, () => observer.disconnect());
  }

  /** The text that is shown. */
  #shown = -1;
  #isHook = false;

  /**
   * Moves the marks to the lines of a step. A step without a line takes them away; the code stays where it is.
   * @param {StepWords["code"]} code
   * @param {boolean} isHook whether a hook runs
   */
  paint(code, isHook) {
    this.#isHook = isHook;
    const [index, running, note, made] = code ?? [this.#shown, null, "", null];
    if (!(index in this.sources)) return;
    this.#show(index);
    this.pane.classList.toggle("hv-idle", running === null && made === null);
    this.note.textContent = escapeBidi(note);
    const { first_line: first } = this.sources[index];
    [...this.list.children].forEach((item, i) => {
      markLine(item, first + i === running);
      item.classList.toggle("hv-made", first + i === made);
    });
    this.#reveal();
  }

  /**
   * Takes as many rows from the code as the words above it need, but leaves a few.
   * @param {number} pixels 0 or less gives all rows back
   */
  giveRoom(pixels) {
    if (pixels <= 0 && !this.list.style.maxHeight) return;
    this.list.style.maxHeight = "";
    if (pixels <= 0) return;
    const { height } = this.list.getBoundingClientRect();
    const row = parseFloat(getComputedStyle(this.list).lineHeight);
    const rows = Math.max(Math.floor((height - pixels) / row), LEAST_ROWS);
    if (rows * row < height) this.list.style.maxHeight = `${rows * row}px`;
    this.#reveal();
  }

  #reveal() {
    // The last one that is revealed is in sight in any case: the line of a hook, else that which made the tensor.
    const [made, running] = [".hv-made", "[aria-current]"].map((mark) => this.list.querySelector(mark));
    for (const line of this.#isHook ? [made, running] : [running, made]) {
      if (line) reveal(this.list, /** @type {HTMLElement} */ (line));
    }
  }

  /** @param {number} index */
  #show(index) {
    if (index === this.#shown) return;
    this.#shown = index;
    this.pane.hidden = false;
    const source = this.sources[index];
    this.title.textContent = this.title.title = escapeBidi(source.title);
    this.list.replaceChildren(...makeLines(source));
    this.list.scrollTop = 0;
  }
}

/**
 * Splits a text into lines, without the blank ones at its end.
 * @param {string} text
 */
export const splitLines = (text) => text.replace(/\s+$/, "").split("\n");

/** @param {SourceText} source */
function makeLines({ text, first_line: first }) {
  return splitLines(text).map((line, i) => {
    const item = makeElement("li", "hv-program-line");
    item.append(makeShape(ARROW, "hv-code-arrow"), makeElement("span", "hv-line-number", String(first + i)), makeElement("code", "", line));
    return item;
  });
}

/**
 * @param {Element} item
 * @param {boolean} isMarked
 */
function markLine(item, isMarked) {
  if (isMarked === item.hasAttribute("aria-current")) return;
  if (isMarked) item.setAttribute("aria-current", "true");
  else item.removeAttribute("aria-current");
}

/**
 * Scrolls a list so that a line is in view, with a line around it if there is room; the page does not move.
 * @param {HTMLElement} list
 * @param {HTMLElement} item
 */
function reveal(list, item) {
  const [outer, inner] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  const around = Math.max(0, Math.min(inner.height, (outer.height - inner.height) / 2));
  const above = inner.top - around - outer.top;
  const below = inner.bottom + around - outer.bottom;
  if (above < 0) list.scrollTop += above;
  else if (below > 0) list.scrollTop += below;
}
