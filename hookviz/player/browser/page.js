// The player without a kernel: a model that only remembers, and its place in a page.

import { make, unpack } from "./dom.js";
import { render } from "./widget.js";

/** What anywidget hands to render, as far as the player asks for it. */
function makeModel(values) {
  const heard = new Map();
  const listeners = (event) => heard.get(event) ?? heard.set(event, new Set()).get(event);
  return {
    get: (name) => values[name],
    set: (name, value) => {
      if (values[name] === value) return;
      values[name] = value;
      for (const act of [...listeners(`change:${name}`)]) act();
    },
    on: (event, act) => listeners(event).add(act),
    off: (event, act) => listeners(event).delete(act),
    save_changes: () => {},
  };
}

/** The pictures are in the page already, for where no script runs: drawn, or packed into an image. */
function pictureOf(shown) {
  if (!shown.matches("img")) return shown.outerHTML;
  const bytes = Uint8Array.from(atob(shown.src.split(",")[1]), (byte) => byte.charCodeAt(0));
  // How an image gets dark would hold for every drawing of the page; the player does so by itself.
  return new TextDecoder().decode(bytes).replace(/<style>.*?<\/style>/, "");
}

/**
 * Whether nothing has the keyboard, or is about to get it: the browser gives it to an autofocus only when it first
 * draws the page. In a frame one cannot know: a field of the page around may have it.
 */
function isKeyboardFree() {
  if (globalThis.top !== globalThis.self || document.querySelector("[autofocus]")) return false;
  return [null, document.body, document.documentElement].includes(document.activeElement);
}

/** When the player shows its first picture, which a large trace unpacks before; what it throws meanwhile rejects. */
function firstPicture(live) {
  return live.querySelector(".hv-picture") ? Promise.resolve() : new Promise((done, fail) => {
    live.addEventListener("hv-drawn", done, { once: true });
    live.addEventListener("hv-failed", (event) => fail(event.detail), { once: true });
  });
}

/** The still picture stays until the player shows its own, and if that fails, below a sentence that says so. */
async function play(still) {
  const root = still.parentElement;
  const twin = root.closest("[data-twin]");
  const state = root.querySelector(".hv-state");
  // Jupyter dresses the tables, code and pictures in such an output for reading; the player dresses its own.
  const dress = root.closest(".jp-RenderedHTMLCommon")?.classList;
  dress?.remove("jp-RenderedHTMLCommon");
  globalThis.hookvizLive?.get(twin?.dataset.twin)?.(twin);
  // At once, before another output's script looks for what does not play yet.
  root.classList.add("hv-starts");
  const live = make("div", "hv-live");
  try {
    await start(still, live, await unpack(state.textContent));
  } catch (error) {
    live.remove();
    dress?.add("jp-RenderedHTMLCommon");
    still.before(make("p", "hv-failed", state.dataset.failed.replace("{why}", () => String(error)), { role: "alert" }));
    console.error(error);
    return;
  }
  root.classList.add("hv-plays");
  // In a page of its own the keys are the player's from the start, unless somebody types elsewhere by now.
  if (root.matches("main") && isKeyboardFree()) live.firstChild.focus({ preventScroll: true });
}

/** Until it plays, the player has its place and size, but is not seen. */
function start(still, live, values) {
  values.svgs ??= [...still.querySelectorAll("svg, img")].map(pictureOf);
  still.before(live);
  render({ model: makeModel(values), el: live });
  return firstPicture(live);
}

// Not by the place of this script: some notebooks take scripts out of an output and run them elsewhere.
document.querySelectorAll(":not(.hv-starts) > .hv-still:has(~ .hv-state)").forEach(play);
