// The table of the hooks that fired; a row goes to its step.

import { rowsBeside } from "./comparison.js";
import { closest, find, listen, make, mark } from "./dom.js";
import { region } from "./panel.js";

/** @import { Row } from "./comparison.js" */
/** @import { Language } from "./language.js" */
/** @import { Context } from "./types" */

/** @param {Context} context */
export function makeFiringsTable({ language, run, beside, driver, signal }) {
  const firings = rowsBeside(run.firings, beside?.firings, (message) => language.read(message));
  const pane = region("hv-firings", language.say("player.firings"));
  const table = make("table");
  pane.hidden = !firings.length;
  table.append(make("caption", "", language.say("player.firings")), headerRow(language));
  const body = make("tbody");
  const rows = firings.map((firing) => firingRow(firing, language));
  body.append(...rows);
  table.append(body);
  pane.append(table);
  listen(body, "click", (event) => {
    const row = closest(event, "tr");
    const place = rows.findIndex((other) => other === row);
    if (place >= 0) driver.go(firings[place].step);
  }, signal);
  /** @param {number} step */
  const paint = (step) => rows.forEach((row, i) => {
    const { isMissing, effect } = firings[i];
    const ahead = firings[i].step - step;
    const shown = isMissing ? language.say("player.missing") : language.read(effect);
    paintRow(pane, row, ahead, ahead > 0 ? language.say("player.to_come") : shown);
  });
  return { pane, paint };
}

/** @param {Language} language */
function headerRow(language) {
  const [head, row] = [make("thead"), make("tr")];
  for (const column of ["step", "hook", "kind", "on", "change", "effect"]) {
    row.append(make("th", "", language.say(`player.col_${column}`), { scope: "col" }));
  }
  head.append(row);
  return head;
}

/**
 * @param {Row} firing
 * @param {Language} language
 */
function firingRow(firing, language) {
  const row = make("tr");
  const place = make("td");
  place.append(make("button", "hv-row-step", String(firing.step + 1), { type: "button" }));
  row.append(place, make("td", "hv-user", firing.hook), make("td", "", language.read(firing.kind)));
  row.append(make("td", "hv-user", language.read(firing.on)), changeCell(firing, language), make("td", "hv-effect"));
  return row;
}

/**
 * @param {Row} firing
 * @param {Language} language
 */
function changeCell({ change, was, isMissing }, language) {
  const text = language.read(change);
  const cell = make("td", "hv-change", isMissing ? "" : text);
  const old = isMissing ? text : was;
  if (old) cell.prepend(make("s", "hv-was", old), " ");
  return cell;
}

/**
 * What a hook did stays hidden until its step, as in the picture.
 * @param {HTMLElement} pane
 * @param {HTMLTableRowElement} row
 * @param {number} ahead how many steps are between
 * @param {string} effect
 */
function paintRow(pane, row, ahead, effect) {
  const state = ahead > 0 ? "hv-todo" : ahead ? "hv-done" : "hv-now";
  if (row.className === state) return;
  row.className = state;
  if (row.lastElementChild) row.lastElementChild.textContent = effect;
  mark(find(row, "button"), { "aria-current": ahead ? "false" : "step" });
  if (!ahead && pane.scrollHeight > pane.clientHeight) pane.scrollTop = row.offsetTop - pane.clientHeight / 2;
}
