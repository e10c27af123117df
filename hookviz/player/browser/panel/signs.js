// The signs of hooks: one that looked, one that changed something, one that did not fire, and one that is still open.

import { makeShape } from "../common/dom.js";

/** @import { Sign } from "../common/types" */

/** @type {{ [sign in Sign]: string }} */
export const SIGNS = {
  looked: "M-5,0a5,5 0 1 0 10,0a5,5 0 1 0 -10,0z",
  changed: "M0,-6.5L6.5,0L0,6.5L-6.5,0z",
  silent: "M-4.5,-4.5L4.5,4.5M4.5,-4.5L-4.5,4.5",
  open: "M-3,-5.2H3L6,0L3,5.2H-3L-6,0z",
};

/** @param {Sign} sign */
export const makeSign = (sign) => makeShape(SIGNS[sign], `hv-hook-sign hv-sign-${sign}`);
