// Keeps in window.shownAfter when the first frame with the player was painted, in milliseconds since the page was asked for.
const look = () => {
  if (!document.querySelector(".hv-live .hv-sentence")) return requestAnimationFrame(look);
  requestAnimationFrame(() => setTimeout(() => (window.shownAfter = performance.now())));
};
look();
