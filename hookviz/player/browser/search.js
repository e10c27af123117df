// The search field of a large trace, with the hits below it.

import { isComposing, say } from "./logic.js";
import { focused, keyed, listen, make, mark, textButton } from "./dom.js";
import { readIndex, seek } from "./seek.js";

/** A button that opens the field; arrows choose a hit, Enter leads there, Escape gives the keyboard back. */
export function makeSearch({ root, words, frames, large, enter, go, signal }) {
  const id = `hv-${Math.random().toString(36).slice(2)}`;
  const pane = make("div", "hv-search", "", { role: "search" });
  const field = make("input", "hv-field", "", { ...COMBOBOX, "aria-label": say(words, "search"), "aria-controls": id, "aria-describedby": `${id}-told` });
  const told = make("p", "hv-hint", "", { id: `${id}-told`, role: "status" });
  const list = make("ul", "hv-hits", "", { id, role: "listbox", "aria-label": say(words, "hits") });
  pane.append(field, told, list);
  pane.hidden = true;
  let [rows, hits, at, before] = [null, [], 0, null];
  const open = async () => {
    if (pane.hidden) before = focused(root);
    pane.hidden = false;
    field.focus();
    field.select();
    if (rows) return;
    const index = await large.part("index");
    rows = index && readIndex(index);
    if (rows) search();
    else told.textContent = say(words, "no_part");
  };
  const close = (holder) => {
    pane.hidden = true;
    (holder?.isConnected ? holder : root).focus({ preventScroll: true });
  };
  const search = () => {
    if (!rows) return;
    const found = seek(rows, frames, field.value);
    hits = found.hits;
    list.replaceChildren(...hits.map((hit, i) => hitOf(hit, `${id}-${i}`, words)));
    told.textContent = say(words, field.value.trim() ? tellingOf(found) : "search_hint", { shown: hits.length, count: found.count });
    mark(field, { "aria-expanded": hits.length > 0 });
    choose(0);
  };
  const choose = (place) => {
    at = (place + hits.length) % hits.length || 0;
    [...list.children].forEach((hit, i) => mark(hit, { "aria-selected": i === at }));
    if (hits.length) mark(field, { "aria-activedescendant": `${id}-${at}` });
    else field.removeAttribute("aria-activedescendant");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const lead = (place) => {
    if (!hits[place]) return;
    close(root);
    if (hits[place].step !== undefined) go(hits[place].step);
    enter(hits[place].view);
  };
  const keys = { ArrowDown: () => choose(at + 1), ArrowUp: () => choose(at - 1), Enter: () => lead(at), Escape: () => close(before) };
  listen(field, "input", search, signal);
  listen(field, "keydown", (event) => {
    // Shift+Enter runs the cell, and Tab goes on, as everywhere.
    if ((event.key === "Enter" && event.shiftKey) || event.key === "Tab") return;
    event.stopPropagation();
    // While letters are composed, keys choose among those.
    if (isComposing(event) || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  }, signal);
  listen(list, "click", (event) => lead([...list.children].indexOf(event.target.closest(".hv-hit"))), signal);
  return { pane, button: keyed(textButton(say(words, "search"), open, signal), "/"), open };
}

const tellingOf = ({ hits, count }) => (hits.length < count ? "hits_some" : `hits_${Math.min(count, 2)}`);

const COMBOBOX = { type: "text", role: "combobox", autocomplete: "off", spellcheck: false, "aria-autocomplete": "list", "aria-expanded": false };

function hitOf({ kind, label, note, step, norm }, id, words) {
  const hit = make("li", "hv-hit", "", { id, role: "option" });
  const more = norm === undefined ? note : say(words, "norm", { norm });
  const when = step === undefined ? say(words, "no_step") : say(words, "at_step", { step: step + 1 });
  const parts = [make("span", "", say(words, `kind_${kind}`)), make("strong", "", label), make("span", "", more), make("span", "", when)];
  hit.append(...parts.flatMap((part) => [part, " "]));
  return hit;
}
