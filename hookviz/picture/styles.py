"""The colours of a picture, and the state of its elements at one step."""

from hookviz.picture.scene import Scene

INK, GREY, PURPLE, AMBER, LIGHT_GREY = "#111827", "#475569", "#6d28d9", "#b45309", "#7c8798"
LEAF_FILL, BOX_FILL, FRAME_FILL, PLATE_FILL, SAVED_FILL = "#eff6ff", "white", "#f8fafc", "#e9eef5", "#fff7ed"
NONFINITE = "#be185d"
"""NaN and Inf in a plot, whose colours are the same on light and dark pages: between the two of the player's
``--hv-red``, and in neither of the scales of heat maps."""
CURRENT_FILL, PIN_FILL, MARKED_FILL = "#fde68a", "#f8fafc", "#faf5ff"

FONT = "Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
"""The fonts in an SVG; texts are measured with a wider one (``letters``), so that all of them fit."""


class Style:
    """The state of a picture at one step: highlighted elements, elements of earlier steps, and texts.

    Args:
        scene: the scene.
        step: the step; None shows the end of the pass, with nothing highlighted.
        for_player: whether the player writes the texts of each step into the picture, which is empty before.
    """

    def __init__(self, scene: Scene, step: int | None, *, for_player: bool = False) -> None:
        marks = [(index, mark) for index, mark in sorted(scene.marks.items()) if step is None or index <= step]
        self.texts = {} if for_player else {key: text for _, mark in marks for key, text in mark.texts.items()}
        self.marked_elements = {element_id for _, mark in marks for element_id in mark.elements}
        self.current_elements = {*marks[-1][1].elements, *marks[-1][1].related} if marks and step is not None else set()
        self.for_player = for_player
        self.last_step = scene.last_step if step is None else step
        """The step that is shown, or the last one."""
        self._add_groups(scene, self.last_step)

    def _add_groups(self, scene: Scene, last: int) -> None:
        """Add the states of closed boxes and of the arrows between them, up to the step ``last``."""
        for group in scene.group_boxes:
            if any(step <= last for step in group.steps):
                self.marked_elements.add(group.id)
            for text_id, texts in () if self.for_player else group.texts.items():
                shown = [step for step in texts if step <= last]
                if shown:
                    self.texts[text_id] = texts[max(shown)]
        self.marked_elements.update(arrow for arrow, step in scene.bundle_steps.items() if step <= last)

    def outline_color(self, element_id: str) -> str:
        """Return the colour of the outline of a box, a pin or an arrow."""
        if element_id in self.current_elements:
            return AMBER
        return PURPLE if element_id in self.marked_elements else LIGHT_GREY

    def pin_fill(self, element_id: str) -> str:
        """Return the colour inside the outline of a pin."""
        if element_id in self.current_elements:
            return CURRENT_FILL
        return MARKED_FILL if element_id in self.marked_elements else PIN_FILL
