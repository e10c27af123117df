// The share menu: copies a link to the step, code that embeds the page, and the picture.

import { makeElement, makeTextButton } from "../common/dom.js";
import { drawPng, exportPictures, joinPictures } from "../picture/picture_export.js";
import { addressOfStep, ownsAddress } from "./step_links.js";
import { closeOnLeaving } from "../panel/view_menu.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Context } from "../common/types" */

/** The size of an embedded player, in pixels. */
const FRAME = { width: 720, height: 560 };

/**
 * Makes the menu. Where the player has no address, as in a notebook's output, it offers the picture alone.
 * @param {Context} context
 * @param {{ showMessage: (text: string) => void }} panel
 */
export function makeShareMenu(context, panel) {
  const { say, root, signal } = context;
  const pane = makeElement("details", "hv-share hv-drawer");
  const menu = makeElement("div", "hv-share-menu", "", { role: "group", "aria-label": say("share") });
  /** @type {[string, () => Promise<string>][]} */
  const entries = [
    ["share_png", () => copyPng(context)],
    ["share_svg", () => copySvg(context)],
  ];
  if (ownsAddress(root)) {
    entries.unshift(
      ["share_link", () => copyText(context, linkToStep(context), "link")],
      ["share_embed", () => copyText(context, embedCode(context), "embed")],
    );
  }
  pane.append(makeElement("summary", "hv-button", say("share")), menu);
  menu.append(...entries.map(([name, act]) => makeTextButton(say(`${name}`), () => {
    pane.open = false;
    act().then((text) => panel.showMessage(text), () => panel.showMessage(say("share_failed")));
  }, signal)));
  closeOnLeaving(pane, root, signal);
  return { pane };
}

/**
 * Returns the address of the page with the step that is shown; `?embed` is left out.
 * @param {Context} context
 */
function linkToStep(context) {
  const url = new URL(location.href);
  url.searchParams.delete("embed");
  url.hash = addressOfStep(context);
  return url.href;
}

/** @param {Context} context */
function embedCode(context) {
  const url = new URL(linkToStep(context));
  const src = `${url.origin === "null" ? "file://" : url.origin}${url.pathname}?embed${url.search.replace("?", "&")}${url.hash}`;
  const frame = makeElement("iframe", "", "", { src, ...FRAME, loading: "lazy", title: document.title });
  return frame.outerHTML;
}

/**
 * Copies a text, and returns the message about it; where the clipboard is closed, the message holds the text.
 * @param {Context} context
 * @param {string} text
 * @param {"link" | "embed"} name
 */
async function copyText({ say }, text, name) {
  const isLocal = location.protocol === "file:" ? ` ${say("share_local")}` : "";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return say("share_refused", { text }) + isLocal;
  }
  return say(`copied_${name}`) + isLocal;
}

/**
 * Returns the picture that is shown; in a split view, both in one.
 * @param {Context} context
 */
function shownPicture({ root, run, baseline }) {
  const pictures = exportPictures(root);
  if (pictures.length === 1) return pictures[0];
  return joinPictures(root, pictures, [baseline ?? run, run].map(({ label }) => label));
}

/** @param {Context} context */
async function copyPng(context) {
  const { say, driver } = context;
  const png = drawPng(shownPicture(context));
  try {
    // A promise, not the picture: Safari allows copying only while it handles the click.
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
  } catch {
    return download(await png, `step-${driver.position().step + 1}.png`, say);
  }
  return say("copied_picture");
}

/** @param {Context} context */
async function copySvg(context) {
  const { say, driver } = context;
  const { markup } = shownPicture(context);
  try {
    await navigator.clipboard.writeText(markup);
  } catch {
    return download(new Blob([markup], { type: "image/svg+xml" }), `step-${driver.position().step + 1}.svg`, say);
  }
  return say("copied_svg");
}

/**
 * Downloads a picture, and returns the message about it.
 * @param {Blob} blob
 * @param {string} name
 * @param {Say} say
 */
function download(blob, name, say) {
  const link = makeElement("a", "", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return say("share_download", { name });
}
