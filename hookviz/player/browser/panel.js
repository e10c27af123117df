// The words beside the picture: what happens at a step, and the table of hooks that fired.

import { cardsOf, say, sizeOf, sizeOfSentence, sourceLines, wasUnlike } from "./logic.js";
import { keyed, legible, listen, make, mark, shape } from "./dom.js";
import { whyOf } from "./why.js";

const ARROW = "M-7,0H5M0,-5L5,0L0,5";

/** Not a section: among the slides of reveal.js each of those is a slide. */
function region(name, label) {
  return make("div", name, "", { role: "region", "aria-label": label, tabindex: 0 });
}

/** What is shown, and what a screen reader hears of it. */
export function makePanel({ frames, beside, hooks, words }) {
  const pane = region("hv-panel", say(words, "panel"));
  const heard = make("div", "hv-heard", "", { "aria-live": "polite" });
  /** Whose the keys are, where that is not plain. */
  const keys = make("p", "hv-keys");
  const paint = (step) => {
    const frame = frames[step];
    pane.classList.toggle("hv-forward", frame.forward);
    speak(`${frame.title}. ${frame.sentence} ${besideOf(step)}`);
    pane.replaceChildren(...panelParts(frame, step));
    pane.scrollTop = 0;
  };
  /** What happens there instead, in the pass that this one is compared with. */
  const besideOf = (step) => {
    const sentence = wasUnlike(beside?.frames[step].sentence, frames[step].sentence);
    return sentence && say(words, "beside", { label: beside.label, sentence });
  };
  const speak = (text) => heard.textContent = legible(text);
  /** Something to say that is no step. */
  const tell = (text, spoken = text) => {
    speak(spoken);
    pane.querySelector(".hv-told").textContent = legible(text);
    pane.scrollTop = 0;
  };
  const panelParts = (frame, step) => [
    headOf(frame, say(words, "step_of", { step: step + 1, steps: frames.length })),
    keys,
    make("p", "hv-told"),
    make("p", `hv-sentence ${sizeOfSentence(frame.sentence)}`, frame.sentence),
    make("p", "hv-beside", besideOf(step)),
    valuesOf(cardsOf(frame), beside ? cardsOf(beside.frames[step]) : []),
    partsOf(frame.parts),
    whyOf(frame, words),
    ...(hooks[frame.hook] ? hookOf(hooks[frame.hook]) : []),
    make("p", "hv-kept", frame.kept),
    make("p", "hv-next", frame.next),
  ];
  return { pane, heard, keys, paint, tell, say: speak };
}

function headOf(frame, count) {
  const head = make("p", "hv-head-line");
  head.append(make("span", "hv-count", count), titleOf(frame.title));
  return head;
}

/** A long name may break behind a dot. */
function titleOf(text) {
  const title = make("strong", "hv-title");
  legible(text).split(/(?<=\.)/).forEach((part, i) => title.append(...(i ? [make("wbr")] : []), part));
  return title;
}

/** One card or two, with an arrow between; wide ones come below each other. */
function valuesOf(cards, before) {
  const row = make("div", "hv-values");
  cards.forEach(({ label, value }, i) => {
    const group = make("div", "hv-value-group");
    const card = make("div", "hv-card");
    const was = wasUnlike(before.find((other) => other.label === label)?.value, value);
    card.append(make("div", "hv-label", label));
    if (was) card.append(make("s", "hv-was", was));
    card.append(numberOf("div", value));
    if (i) group.append(shape(ARROW, "hv-arrow"));
    group.append(card);
    row.append(group);
  });
  return row;
}

/** A number stands large; a matrix may scroll, and must then be reachable from the keyboard. One line may be broken. */
function numberOf(tag, value) {
  const size = sizeOf(value);
  return make(tag, `hv-value hv-${size}${value.includes("\n") ? "" : " hv-flat"}`, value, size === "many" ? { tabindex: 0 } : {});
}

/** What arrived from where, or what is sent to whom. */
function partsOf(parts) {
  const list = make("dl", "hv-parts");
  for (const [where, value] of parts) {
    const part = make("div", "hv-part");
    part.append(make("dt", "", where), numberOf("dd", value));
    list.append(part);
  }
  return list;
}

/** Whose code ran: its name, its place and its lines. */
export function hookOf(hook) {
  const where = make("p", "hv-where");
  where.append(make("code", "hv-hook-name", hook.name), make("span", "", hook.where));
  if (hook.source === null) return [where, make("p", "hv-kept", hook.missing)];
  const code = make("ol", "hv-code");
  for (const { number, text, marked } of sourceLines(hook)) {
    const line = make("li", marked ? "hv-marked" : "");
    line.append(make("span", "hv-line-number", String(number)), make("code", "", text));
    code.append(line);
  }
  return [where, code];
}

/** A row goes to its step. */
export function makeFirings({ firings, words, go, signal }) {
  const pane = region("hv-firings", say(words, "firings"));
  const table = make("table");
  pane.hidden = !firings.length;
  table.append(make("caption", "", say(words, "firings")), headerOf(words));
  const body = make("tbody");
  const rows = firings.map(rowOf);
  body.append(...rows);
  table.append(body);
  pane.append(table);
  listen(body, "click", (event) => {
    const row = event.target.closest("tr");
    if (row) go(firings[rows.indexOf(row)].step);
  }, signal);
  return { pane, paint: (step) => rows.forEach((row, i) => {
    const ahead = firings[i].step - step;
    const { missing, effect } = firings[i];
    markRow(pane, row, ahead, ahead > 0 ? say(words, "to_come") : missing ? say(words, "missing") : effect);
  }) };
}

function headerOf(words) {
  const [head, row] = [make("thead"), make("tr")];
  for (const column of ["step", "hook", "kind", "on", "change", "effect"]) {
    row.append(make("th", "", say(words, `col_${column}`), { scope: "col" }));
  }
  head.append(row);
  return head;
}

function rowOf(firing) {
  const row = make("tr");
  const place = make("td");
  place.append(make("button", "hv-row-step", String(firing.step + 1), { type: "button" }));
  row.append(place, make("td", "hv-user", firing.hook), make("td", "", firing.kind), make("td", "hv-user", firing.on));
  row.append(changeOf(firing), make("td", "hv-effect"));
  return row;
}

function changeOf({ change, was, missing }) {
  const cell = make("td", "hv-change", missing ? "" : change);
  const old = missing ? change : was;
  if (old) cell.prepend(make("s", "hv-was", old), " ");
  return cell;
}

/** What a hook did stays hidden until its step, as in the picture. */
function markRow(pane, row, ahead, effect) {
  const state = ahead > 0 ? "hv-todo" : ahead ? "hv-done" : "hv-now";
  if (row.className === state) return;
  row.className = state;
  row.lastChild.textContent = effect;
  mark(row.querySelector("button"), { "aria-current": ahead ? "false" : "step" });
  if (!ahead && pane.scrollHeight > pane.clientHeight) pane.scrollTop = row.offsetTop - pane.clientHeight / 2;
}

/** What must be known about the whole recording. */
export function makeNotes(notes) {
  const list = make("ul", "hv-notes");
  list.hidden = !notes.length;
  list.append(...notes.map((note) => make("li", "", note)));
  return list;
}

/** What is wrong with the gradients, each with a link to where that begins; in a small trace one may want to find out. */
export function makeFound(notes, { model, words, panel, open }) {
  const pane = make("details", "hv-found");
  pane.hidden = !notes.length;
  pane.open = open;
  const list = make("ul", "hv-notes");
  for (const [told, step] of notes.map((note) => note.split(LINK))) {
    list.append(make("li"));
    list.lastChild.append(make("a", "", told, { href: `#step-${step}` }));
  }
  pane.append(keyed(make("summary", "", say(words, notes.length > 1 ? "found_many" : "found_one", { count: notes.length })), "W"), list);
  const show = () => {
    if (pane.hidden || model.get("predict")) return panel.tell(say(words, pane.hidden ? "found_none" : "found_later"));
    pane.open = true;
    list.querySelector("a").focus();
  };
  return { pane, actions: { found: show } };
}

/** Stands between what is told and its step. */
export const LINK = "\n#step-";
