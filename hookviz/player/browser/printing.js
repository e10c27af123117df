// Printing: the paper shows what is on the screen, before the static picture of the end of the recording.

import { makeElement, onAbort } from "./dom.js";
import { exportPictures } from "./picture_export.js";

/** @import { Context } from "./types" */

/**
 * Puts the pictures of the step into the static picture while the page is printed.
 * @param {Context} context
 */
export function followPrinting(context) {
  const { root, model, signal } = context;
  const still = root.closest(".hv-plays, .hv-starts")?.querySelector(".hv-still");
  if (!still) return;
  /** @type {HTMLElement | null} */
  let printed = null;
  const clean = () => {
    printed?.remove();
    printed = null;
    still.querySelectorAll("[data-run]").forEach((figure) => figure.classList.remove("hv-not-printed"));
  };
  const prepare = () => {
    clean();
    printed = makePrinted(context);
    still.prepend(printed);
    // Of a what-if, the run with all hooks on and the one that is shown.
    const shown = model.get("shown");
    for (const figure of shown ? still.querySelectorAll("[data-run]") : []) {
      const isSide = ["0", String(shown)].includes(figure.getAttribute("data-run") ?? "");
      figure.classList.toggle("hv-not-printed", !isSide);
    }
  };
  globalThis.addEventListener("beforeprint", prepare, { signal });
  globalThis.addEventListener("afterprint", clean, { signal });
  onAbort(signal, clean);
}

/** @param {Context} context */
function makePrinted({ root, run, baseline, language, driver, model }) {
  const pane = makeElement("div", "hv-printed");
  const { step, count } = driver.position();
  // Paper is light.
  const isDark = root.classList.contains("hv-dark");
  root.classList.remove("hv-dark");
  const pictures = exportPictures(root);
  root.classList.toggle("hv-dark", isDark);
  const runs = model.get("split") && baseline ? [baseline, run] : [run];
  pictures.forEach(({ markup }, i) => {
    const { label, steps } = runs[i] ?? run;
    const sentence = language.read(steps[step].words?.sentence ?? "");
    const caption = [language.read(label), `${language.say("player.step_of", { step: step + 1, steps: count })}: ${sentence}`];
    const figure = makeElement("figure");
    figure.innerHTML = markup;
    figure.prepend(makeElement("figcaption", "", caption.filter(Boolean).join(" · ")));
    pane.append(figure);
  });
  return pane;
}
