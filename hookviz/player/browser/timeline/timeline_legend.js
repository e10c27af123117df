// The legend of the timeline: the shapes of the steps, and the signs of the hooks.

import { makeElement } from "../common/dom.js";
import { legendKinds } from "../common/stepping.js";
import { makeSign } from "../panel/signs.js";
import { makeGlyph } from "./timeline_slider.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Context, LoadedRun, Sign } from "../common/types" */

/**
 * Makes the legend of the shapes that occur.
 * @param {Context} context
 */
export function makeLegend({ say, run }) {
  const list = makeElement("ul", "hv-legend");
  list.append(...makeSignEntries(run, say));
  for (const glyph of legendKinds(run.steps.filter(({ sign }) => !sign))) {
    list.append(makeEntry(makeGlyph(glyph, "hv-tick hv-done"), say(`legend_${glyph}`)));
  }
  return list;
}

/**
 * Makes an entry for each sign of a hook that occurs.
 * @param {LoadedRun} run
 * @param {Say} say
 */
export function makeSignEntries({ steps, silent }, say) {
  /** @type {Sign[]} */
  const signs = ["looked", "changed", "silent"];
  const shown = signs.filter((sign) => steps.some((step) => step.sign === sign) || (sign === "silent" && silent.length > 0));
  return shown.map((sign) => makeEntry(makeSign(sign), say(`legend_${sign}`)));
}

/**
 * @param {Element} shape
 * @param {string} text
 */
function makeEntry(shape, text) {
  const entry = makeElement("li");
  entry.append(shape, makeElement("span", "", text));
  return entry;
}
