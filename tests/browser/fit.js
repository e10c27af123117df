// What is cut or out of sight in a player, in words; the player is scrolled to the top of its window. `given`: where the screen ends.
(player, given) => {
  const screenEnd = given ?? innerHeight;
  player.scrollIntoView({ block: "start", behavior: "instant" });
  const found = [];
  const box = (part) => part.getBoundingClientRect();

  /** A picture that is cut has fading edges, and a whole one has neither these nor a map. */
  const checkEdges = (pane) => {
    const [picture, room, stage] = [box(pane.querySelector("svg")), box(pane), pane.closest(".hv-stage")];
    const [left, top] = [room.left - picture.left, room.top - picture.top];
    const beyond = { left, top, right: picture.right - room.right, bottom: picture.bottom - room.bottom };
    const hidden = Object.keys(beyond).filter((edge) => beyond[edge] > 1.5);
    const faded = stage.querySelector(".hv-fade").dataset.hidden.split(" ");
    for (const edge of hidden) if (!faded.includes(edge)) found.push(`cut without a fade: ${edge}`);
    const hasMap = stage.querySelector(".hv-map").checkVisibility();
    if (!hidden.length && hasMap) found.push("a map of what is whole");
  };

  /** The hook of the step, or else its box, is in sight; one that is larger than the pane, with a part. */
  const checkStep = (pane) => {
    const hook = pane.querySelector(".hv-pin.hv-now");
    const kinds = [hook, ...["node", "fold", "module"].map((kind) => pane.querySelector(`.hv-${kind}.hv-now > .hv-box`))];
    const now = kinds.find(Boolean);
    if (!now) return;
    const [inner, outer] = [box(now), box(pane)];
    const isSeen = (start, end, size) => {
      if (inner[size] > outer[size]) return inner[end] > outer[start] + 20 && inner[start] < outer[end] - 20;
      return inner[start] >= outer[start] - 2 && inner[end] <= outer[end] + 2;
    };
    if (!isSeen("left", "right", "width") || !isSeen("top", "bottom", "height")) found.push("the box of the step is out of sight");
  };

  const panes = [...player.querySelectorAll(".hv-graph")].filter((pane) => pane.checkVisibility() && pane.querySelector("svg"));
  panes.forEach(checkEdges);
  panes.forEach(checkStep);
  const sentence = player.querySelector(".hv-panel :is(.hv-sentence, .hv-question)");
  const bottom = Math.min(screenEnd, box(player.querySelector(".hv-panel")).bottom);
  if (!sentence || box(sentence).bottom > bottom + 1) found.push("the sentence is out of sight");
  // The buttons of a closed menu have boxes, too.
  const shown = [...player.querySelectorAll(".hv-controls > :not(.hv-legend)")].filter((part) => part.checkVisibility());
  const below = Math.max(...shown.map((part) => box(part).bottom)) - screenEnd;
  if (below > 1) found.push(`the buttons end ${Math.round(below)} pixels below the screen`);
  if (player.scrollWidth > player.clientWidth + 1) found.push("the player is wider than its room");
  return found;
}
