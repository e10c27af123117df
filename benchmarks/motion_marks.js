// Marks in the performance trace when a step is shown, and when its motion begins and ends.
() => {
  const player = document.querySelector(".hv-live .hv-player");
  const isMoving = () => player.querySelector(".hv-motion") !== null;
  let [moving, step] = [isMoving(), ""];
  new MutationObserver(() => {
    const shown = player.querySelector(".hv-count").textContent;
    if (shown !== step) performance.mark("hookviz step");
    if (isMoving() !== moving) performance.mark(moving ? "hookviz rest" : "hookviz motion");
    [moving, step] = [isMoving(), shown];
  }).observe(player, { subtree: true, childList: true });
}
