// The timeline: a shape for each step, or bars for many steps; click or drag to go to a step.

import { makeElement } from "../common/dom.js";
import { legendKinds } from "../common/stepping.js";
import { makeBars } from "./timeline_bars.js";
import { makeGlyph } from "./timeline_slider.js";
import { makeTicks } from "./timeline_ticks.js";

/** @import { Context } from "../common/types" */
/** @import { Timeline } from "./timeline_slider.js" */

/** The most steps with a shape each: more shapes could not be distinguished. */
const MAX_TICKS = 120;

/**
 * @param {Context} context
 * @returns {Timeline}
 */
export const makeTimeline = (context) => (context.run.steps.length > MAX_TICKS ? makeBars(context) : makeTicks(context));

/**
 * Makes the legend of the shapes that occur.
 * @param {Context} context
 */
export function makeLegend({ say, run }) {
  const list = makeElement("ul", "hv-legend");
  for (const glyph of legendKinds(run.steps)) {
    const entry = makeElement("li");
    entry.append(makeGlyph(glyph, "hv-tick hv-done"), makeElement("span", "", say(`legend_${glyph}`)));
    list.append(entry);
  }
  return list;
}
