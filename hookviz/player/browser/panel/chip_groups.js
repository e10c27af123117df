// Which calls of hooks share a chip: consecutive ones of the same hook that did the same. The node tests run this file.

/** @import { FiringRow } from "../common/payload" */
/** @import { Sign } from "../common/types" */

/** @typedef {{ name: string, on: string, sign: Sign, short: string, steps: number[] }} ChipGroup */

/**
 * Joins consecutive calls of the same hook that did the same. What is hidden counts as the same.
 * @param {FiringRow[]} firings
 * @param {number} hiddenFrom the first step whose effects are hidden
 * @returns {ChipGroup[]}
 */
export function joinFirings(firings, hiddenFrom) {
  /** @type {(FiringRow & { key: string })[][]} */
  const groups = [];
  for (const firing of firings) {
    const { name, kind, step, changed, short } = firing;
    const key = JSON.stringify([name, kind, step < hiddenFrom && [changed, short]]);
    const last = groups.at(-1);
    if (last?.[0].key === key) last.push({ ...firing, key });
    else groups.push([{ ...firing, key }]);
  }
  return groups.map((group) => {
    const [{ name, step, changed, short }] = group;
    const sign = step < hiddenFrom ? (changed ? "changed" : "looked") : "open";
    return { name, sign, short, on: joinOwners(group.map(({ on }) => on)), steps: group.map((firing) => firing.step) };
  });
}

/**
 * Writes the names of several owners: `m.layers.11`, `m.layers.10` … as `m.layers.11 … 7`; of several calls, the module.
 * @param {string[]} names
 */
export function joinOwners(names) {
  const [first, last] = [names[0], names[names.length - 1]];
  const shortest = names.reduce((one, other) => (other.length < one.length ? other : one));
  if (names.every((name) => name === shortest || name.startsWith(`${shortest} `))) return shortest;
  const parts = names.map((name) => /^(.*?)(\d+)(\D*)$/.exec(name));
  const [head, , tail] = parts[0]?.slice(1) ?? [];
  const isCounted = parts.every((part) => part && part[1] === head && part[3] === tail) && ["", ")"].includes(tail);
  return isCounted ? `${head}${parts[0]?.[2]} … ${parts.at(-1)?.[2]}${tail}` : `${first} … ${last}`;
}
