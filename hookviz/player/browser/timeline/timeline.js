// The timeline: a shape for each step, or bars for many steps; click or drag to go to a step.

import { makeBars } from "./timeline_bars.js";
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
