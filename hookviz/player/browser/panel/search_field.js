// The search field and its list of hits.

import { addKeyHint, closestTarget, focusedElement, listen, makeElement, makeTextButton, newId, setAttributes } from "../common/dom.js";
import { isComposing } from "../common/key_bindings.js";
import { hideLater } from "../predict/questions.js";
import { readIndex, search } from "./search.js";

/** @import { Say } from "../common/labels.js" */
/** @import { IndexChunk } from "../common/payload" */
/** @import { Entry, Hit } from "./search.js" */
/** @import { Context } from "../common/types" */

const COMBOBOX = {
  type: "text",
  role: "combobox",
  autocomplete: "off",
  spellcheck: false,
  "aria-autocomplete": "list",
  "aria-expanded": false,
};

/** A button that opens the field; arrows choose a hit, Enter goes to it, Escape restores the focus. */
export class SearchField {
  /**
   * @param {Context} context
   * @param {Element} previous the element after which the field appears
   * @param {(view: string) => void} enter shows a picture
   */
  constructor(context, previous, enter) {
    const { say, signal } = context;
    this.context = context;
    this.previous = previous;
    this.enter = enter;
    this.pane = makeElement("div", "hv-search", "", { role: "search" });
    this.button = addKeyHint(makeTextButton(say("search"), () => this.open(), signal), "/");
    const [list, count] = [this.#id, `${this.#id}-count`];
    const links = { "aria-label": say("search"), "aria-controls": list, "aria-describedby": count };
    this.field = makeElement("input", "hv-field", "", { ...COMBOBOX, ...links });
    this.count = makeElement("p", "hv-hint", "", { id: count, role: "status" });
    this.list = makeElement("ul", "hv-hits", "", { id: list, role: "listbox", "aria-label": say("hits") });
    this.pane.append(this.field, this.count, this.list);
    listen(this.field, "input", () => this.#update(), signal);
    listen(this.field, "keydown", (event) => this.#press(event), signal);
    listen(this.list, "click", (event) => {
      const hit = closestTarget(event, ".hv-hit");
      if (hit) this.#follow([...this.list.children].indexOf(hit));
    }, signal);
  }

  #id = newId();
  /** @type {Entry[] | null} */
  #entries = null;
  /** @type {Hit[]} */
  #hits = [];
  /** The index of the chosen hit. */
  #chosen = 0;
  /** The element that had the focus before. @type {HTMLElement | null} */
  #before = null;

  async open() {
    const { root, say, fetchChunk } = this.context;
    if (!this.pane.isConnected) {
      this.#before = focusedElement(root);
      this.previous.after(this.pane);
    }
    this.field.focus();
    this.field.select();
    if (this.#entries) return;
    const chunk = /** @type {IndexChunk | null} */ (await fetchChunk("index"));
    this.#entries = chunk && readIndex(chunk);
    if (this.#entries) this.#update();
    else this.count.textContent = say("no_part");
  }

  /** @param {HTMLElement | null} holder gets the focus */
  #close(holder) {
    this.pane.remove();
    (holder?.isConnected ? holder : this.context.root).focus({ preventScroll: true });
  }

  #update() {
    if (!this.#entries) return;
    const { say } = this.context;
    const result = search(this.#entries, hideLater(this.context), this.field.value);
    this.#hits = result.hits;
    this.list.replaceChildren(...result.hits.map((hit, i) => makeHitItem(hit, `${this.#id}-${i}`, say)));
    const key = this.field.value.trim() ? hitCountKey(result) : "search_hint";
    this.count.textContent = say(key, { shown: result.hits.length, count: result.count });
    setAttributes(this.field, { "aria-expanded": result.hits.length > 0 });
    this.#choose(0);
  }

  /** @param {number} index */
  #choose(index) {
    const { length } = this.#hits;
    this.#chosen = (index + length) % length || 0;
    [...this.list.children].forEach((hit, i) => setAttributes(hit, { "aria-selected": i === this.#chosen }));
    if (length) setAttributes(this.field, { "aria-activedescendant": `${this.#id}-${this.#chosen}` });
    else this.field.removeAttribute("aria-activedescendant");
    this.list.children[this.#chosen]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} index */
  #follow(index) {
    const hit = this.#hits[index];
    if (!hit) return;
    this.#close(this.context.root);
    if (hit.step !== undefined) this.context.driver.goTo(hit.step);
    this.enter(hit.view);
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    /** @type {{ [key: string]: () => void }} */
    const keys = {
      ArrowDown: () => this.#choose(this.#chosen + 1),
      ArrowUp: () => this.#choose(this.#chosen - 1),
      Enter: () => this.#follow(this.#chosen),
      Escape: () => this.#close(this.#before),
    };
    // Shift+Enter runs the cell, and Tab moves the focus.
    if ((event.key === "Enter" && event.shiftKey) || event.key === "Tab") return;
    event.stopPropagation();
    // During a composition, keys belong to the input method.
    if (isComposing(event) || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  }
}

/** @param {{ hits: Hit[], count: number }} result */
const hitCountKey = ({ hits, count }) => (hits.length < count ? "hits_some" : `hits_${Math.min(count, 2)}`);

/**
 * @param {Hit} hit
 * @param {string} id
 * @param {Say} say
 */
function makeHitItem({ kind, label, note, step, norm }, id, say) {
  const hit = makeElement("li", "hv-hit", "", { id, role: "option" });
  const more = norm === undefined || norm === null ? note : say("norm", { norm });
  const when = step === undefined ? say("no_step") : say("at_step", { step: step + 1 });
  const kindName = makeElement("span", "", say(`kind_${kind}`));
  const parts = [kindName, makeElement("strong", "", label), makeElement("span", "", more), makeElement("span", "", when)];
  hit.append(...parts.flatMap((part) => [part, " "]));
  return hit;
}
