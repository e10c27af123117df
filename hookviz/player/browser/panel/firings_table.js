// The table of firings, and below it the hooks that did not fire. A click on a firing goes to its step.

import { compareFirings } from "../compare/comparison.js";
import { appendNames, closestTarget, escapeBidi, findElement, listen, makeElement, setAttributes } from "../common/dom.js";
import { makeRegion } from "./panel.js";
import { makeSign } from "./signs.js";

/** @import { Row } from "../compare/comparison.js" */
/** @import { Say } from "../common/labels.js" */
/** @import { SilentHook } from "../common/payload" */
/** @import { Context, Sign } from "../common/types" */

/** @param {Context} context */
export function makeFiringsTable({ say, run, baseline, driver, signal }) {
  const firings = compareFirings(run.firings, baseline?.firings);
  const pane = makeRegion("hv-firings", say("firings"));
  const table = makeElement("table");
  pane.hidden = !firings.length && !run.silent.length;
  table.append(makeElement("caption", "", say("firings")), makeHeaderRow(say));
  const body = makeElement("tbody");
  const rows = firings.map(makeFiringRow);
  body.append(...rows, ...run.silent.map(makeSilentRow));
  table.append(body);
  pane.append(table);
  listen(body, "click", (event) => {
    const row = closestTarget(event, "tr");
    const index = rows.findIndex((other) => other === row);
    if (index >= 0) driver.goTo(firings[index].step);
  }, signal);
  /** @param {number} step */
  const paint = (step) => rows.forEach((row, i) => {
    const { isMissing, effect, changed } = firings[i];
    const ahead = firings[i].step - step;
    const shown = isMissing ? say("missing") : effect;
    const sign = isMissing ? "silent" : changed ? "changed" : "looked";
    const isPainted = paintRow(pane, row, ahead, ahead > 0 ? say("to_come") : shown, ahead > 0 ? "open" : sign);
    if (isPainted) fillChange(row, firings[i], ahead);
  });
  return { pane, paint };
}

/** @param {Say} say */
function makeHeaderRow(say) {
  const [head, row] = [makeElement("thead"), makeElement("tr")];
  for (const column of ["step", "hook", "kind", "on", "change", "effect"]) {
    row.append(makeElement("th", "", say(`col_${column}`), { scope: "col" }));
  }
  head.append(row);
  return head;
}

/** @param {Row} firing */
function makeFiringRow(firing) {
  const row = makeElement("tr");
  const stepCell = makeElement("td");
  stepCell.append(makeElement("button", "hv-row-step", String(firing.step + 1), { type: "button" }));
  row.append(stepCell, makeElement("td", "hv-user", firing.hook), makeElement("td", "", firing.kind));
  row.append(makePathCell(firing.on), makeElement("td", "hv-change"), makeElement("td", "hv-effect"));
  return row;
}

/** @param {SilentHook} hook */
function makeSilentRow({ name, on, reason }) {
  const row = makeElement("tr", "hv-silent-row");
  const cell = makeElement("td", "hv-effect", "", { colspan: "2" });
  cell.append(makeSign("silent"), reason);
  row.append(makeElement("td"), makeElement("td", "hv-user", name), makeElement("td"), makePathCell(on), cell);
  return row;
}

/**
 * Makes a cell for a path such as net.head.weight.
 * @param {string} path
 */
function makePathCell(path) {
  const cell = makeElement("td", "hv-user");
  appendNames(cell, path);
  return cell;
}

/**
 * Writes what a hook changed, once its step is reached: before that, a search of the page must not find it.
 * @param {HTMLTableRowElement} row
 * @param {Row} firing
 * @param {number} ahead steps until the firing
 */
function fillChange(row, { change, was, isMissing }, ahead) {
  const cell = findElement(row, ".hv-change");
  const old = isMissing ? change : was;
  const parts = [...(old ? [makeElement("s", "hv-was", old), " "] : []), ...(isMissing ? [] : [escapeBidi(change)])];
  cell.replaceChildren(...(ahead > 0 ? [] : parts));
}

/**
 * Paints a row; returns whether it has changed. The effect of a hook stays hidden until its step, as in the picture.
 * @param {HTMLElement} pane
 * @param {HTMLTableRowElement} row
 * @param {number} ahead steps until the firing
 * @param {string} effect
 * @param {Sign} sign
 */
function paintRow(pane, row, ahead, effect, sign) {
  const state = ahead > 0 ? "hv-todo" : ahead ? "hv-done" : "hv-now";
  if (row.className === state) return false;
  row.className = state;
  row.lastElementChild?.replaceChildren(makeSign(sign), effect);
  setAttributes(findElement(row, "button"), { "aria-current": ahead ? "false" : "step" });
  if (!ahead && pane.scrollHeight > pane.clientHeight) pane.scrollTop = row.offsetTop - pane.clientHeight / 2;
  return true;
}
