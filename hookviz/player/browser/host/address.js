// The address of a step: `#step-7&off=c_hook` is step 7 with that hook switched off. The node tests run this file.

/** @typedef {{ step: number, off: string[] }} Target a step, counted from 0, and the names of the switches that are off */

/**
 * Returns what an address leads to; null for addresses that name no step.
 * @param {string | null | undefined} address
 * @returns {Target | null}
 */
export function readAddress(address) {
  const match = /#step-([1-9]\d*)(?:&off=([^&#]*))?$/.exec(address ?? "");
  return match && { step: Number(match[1]) - 1, off: (match[2] ?? "").split(",").filter(Boolean).map(decode) };
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a percent sign that somebody typed
  }
}

/**
 * Returns the address of a target.
 * @param {Target} target
 */
export function writeAddress({ step, off }) {
  return `#step-${step + 1}${off.length ? `&off=${off.map(encodeURIComponent).join(",")}` : ""}`;
}

/**
 * Returns the name of each switch: its hook's label, with the tensor if several have that label, as in `c_hook@c`.
 * @param {{ label: string, on: string }[]} switches
 */
export function switchNames(switches) {
  const labels = switches.map(({ label }) => label);
  const names = switches.map(({ label, on }) => (labels.indexOf(label) === labels.lastIndexOf(label) ? label : `${label}@${on}`));
  // The same function, twice on one tensor: the first keeps its name, the second is `#2`.
  return names.map((name, i) => {
    const number = names.slice(0, i).filter((other) => other === name).length;
    return number ? `${name}#${number + 1}` : name;
  });
}

/**
 * Returns the run and the step that a target leads to, and what of it does not exist: the nearest is shown instead.
 * @param {Target} target
 * @param {{ names: string[], labels: string[], combinations: { [off: string]: number }, shown: number, count: number }} player
 */
export function resolveTarget({ step, off }, { names, labels, combinations, shown, count }) {
  /** @param {string} name */
  const find = (name) => (names.includes(name) ? names.indexOf(name) : labels.indexOf(name));
  const unknown = off.filter((name) => find(name) < 0);
  const found = [...new Set(off.map(find))].filter((index) => index >= 0).sort((a, b) => a - b);
  const [all, alone] = [combinations[found.join(",")], combinations[String(found[0])]];
  // Without switches, such as in a comparison, a link does not choose the run.
  const allOn = names.length ? 0 : shown;
  const run = found.length ? (all ?? alone ?? allOn) : allOn;
  return { shown: run, step: Math.min(step, count - 1), unknown, isAlone: found.length > 0 && all === undefined, isPast: step >= count };
}
