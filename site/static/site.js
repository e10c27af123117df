// What scrolls sideways can be scrolled with the keyboard, too.
function reach() {
  for (const box of document.querySelectorAll(".highlight pre, .table-wrapper, .output, section > table")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("load", reach);
addEventListener("resize", reach);
// What opens with a click has no width before.
addEventListener("toggle", reach, true);
