// Why a gradient is what it is: its formula with the values in it, and below it PyTorch's own text of the formula.

import { say } from "./logic.js";
import { make } from "./dom.js";

const SHORT = 12;

/** What the reasons stand under: the one gradient that they are about, if it is short. */
export function whyTitle({ kind, after, parts }, words) {
  const value = kind === "arrive" ? after : parts.length === 1 ? parts[0][1] : "";
  return value && value.length <= SHORT ? say(words, "why_value", { value }) : say(words, "why");
}

/** The reasons of a step, or nothing where there is nothing to explain. */
export function whyOf(frame, words) {
  const pane = make("div", "hv-why");
  const reasons = frame.why ?? [];
  pane.hidden = !reasons.length;
  if (!reasons.length) return pane;
  pane.append(make("p", "hv-label", whyTitle(frame, words)));
  for (const [text, source, note] of reasons) {
    pane.append(make("p", "hv-formula", text), make("p", "hv-source", source && say(words, "why_source", { source })));
    pane.append(make("p", "hv-source", note));
  }
  return pane;
}
