// The switch between the languages in which a content is there.

import { unpack } from "../common/compression.js";
import { makeElement, makeTextButton, setAttributes } from "../common/dom.js";

/** @import { Panel } from "../panel/panel.js" */
/** @import { Content } from "../common/payload" */
/** @import { Context, Model } from "../common/types" */

/** How long the kernel may take to make the content in another language, in milliseconds. */
const KERNEL_TIMEOUT = 5000;
/** The tag of a language, by which a browser chooses the shapes of Chinese characters. */
const TAGS = { zh: "zh-CN" };

/** @param {string} language */
export const tagOf = (language) => /** @type {{ [language: string]: string }} */ (TAGS)[language] ?? language;

/** The contents that were shown before, and need not be unpacked again. @type {WeakMap<Model, Map<string, Content>>} */
const shownBefore = new WeakMap();

/**
 * Shows the content in another language: at once if it is there, or else when the kernel has sent it.
 * @param {Model} model
 * @param {string} language
 */
export async function changeLanguage(model, language) {
  const content = model.get("content");
  const packed = content.others[language];
  if (packed === "") {
    model.send?.({ language });
    return;
  }
  const kept = shownBefore.get(model) ?? new Map();
  shownBefore.set(model, kept.set(content.language, content));
  const next = kept.get(language) ?? (await unpack(packed));
  // Those that were shown before are not needed packed; their names stay, so that the switch knows them.
  next.others = { ...content.others, [content.language]: "shown" };
  delete next.others[language];
  model.set("content", next);
  model.save_changes();
}

/**
 * Makes a button for each language; null if there is only one.
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeLanguageSwitch({ model, content, say, root, signal }, panel) {
  const names = [content.language, ...Object.keys(content.others)].sort();
  if (names.length < 2) return null;
  const pane = makeElement("div", "hv-speeds hv-languages", "", { role: "group", "aria-label": say("language") });
  /** @param {string} name */
  const choose = async (name) => {
    if (name === content.language) return;
    // The menu closes when the player is built anew, and its summary is what can keep the focus.
    /** @type {HTMLElement | null} */ (root.querySelector(".hv-view > summary"))?.focus();
    await changeLanguage(model, name);
    // The player is built anew in the new language; if not, no kernel has answered.
    setTimeout(() => signal.aborted || panel.showMessage(say("no_part")), KERNEL_TIMEOUT);
  };
  for (const name of names) {
    const title = new Intl.DisplayNames([name], { type: "language" }).of(name) ?? name;
    const button = makeTextButton(title, () => choose(name), signal);
    setAttributes(button, { lang: tagOf(name), "aria-pressed": name === content.language });
    pane.append(button);
  }
  return pane;
}
