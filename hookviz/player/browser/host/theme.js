// The light or dark theme, which follows the page around the player.

import { listen, onAbort } from "../common/dom.js";

/**
 * Returns whether the page is dark: Jupyter's setting counts first, then VS Code's, Colab's, Furo's (the theme of our site), then
 * the system's. The classic notebook, whose body has the class notebook_app, is always light.
 * @param {{ jupyter?: string, classes?: string, colab?: string | null, furo?: string, system: boolean }} page
 */
export function isDark({ jupyter, classes = "", colab, furo = "auto", system }) {
  if (jupyter) return jupyter === "false";
  if (/\bnotebook_app\b/.test(classes)) return false;
  if (/\bvscode-(dark|light|high-contrast)/.test(classes)) return !classes.includes("light");
  if (colab) return colab === "dark";
  return furo === "auto" ? system : furo === "dark";
}

/**
 * Applies the theme of the page, now and whenever it changes.
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
export function followTheme(root, signal) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const { body, documentElement } = document;
  const paint = () => root.classList.toggle("hv-dark", isDark({
    jupyter: body.dataset.jpThemeLight,
    classes: body.className,
    colab: documentElement.getAttribute("theme"),
    furo: body.dataset.theme,
    system: system.matches,
  }));
  const observer = new MutationObserver(paint);
  observer.observe(body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "data-theme"] });
  observer.observe(documentElement, { attributes: true, attributeFilter: ["theme"] });
  listen(system, "change", paint, signal);
  onAbort(signal, () => observer.disconnect());
  paint();
}
