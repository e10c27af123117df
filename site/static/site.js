// From disk, a browser reads no other page, so the search shows titles without the text around what it found.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A screen reader lists the two side bars by their names.
const isChinese = document.documentElement.lang.startsWith("zh");
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", isChinese ? "页面" : "Pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", isChinese ? "本页内容" : "On this page");

// What scrolls sideways can be scrolled with the keyboard, too, and fades where it goes on.
function fade(box) {
  const left = box.scrollWidth - box.clientWidth - box.scrollLeft;
  box.classList.toggle("goes-on", box.tabIndex === 0 && left > 1);
}

function reach() {
  for (const box of document.querySelectorAll(".highlight pre, .table-wrapper, .output, section > table")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    fade(box);
  }
}

addEventListener("load", reach);
addEventListener("resize", reach);
addEventListener("scroll", ({ target }) => { if (target.classList) fade(target); }, true);
// What opens with a click has no width before.
addEventListener("toggle", reach, true);
