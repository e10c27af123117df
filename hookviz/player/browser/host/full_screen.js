// Full screen: whether the player fills the screen, and switching that on and off.

/** @param {HTMLElement} root */
export function isFullScreen(root) {
  const tree = root.getRootNode();
  return (tree instanceof Document || tree instanceof ShadowRoot) && tree.fullscreenElement === root;
}

/**
 * @param {HTMLElement} root
 * @param {() => void} refused
 */
export function toggleFullScreen(root, refused) {
  if (isFullScreen(root)) document.exitFullscreen();
  else if (root.requestFullscreen) root.requestFullscreen().catch(refused);
  else refused();
}
