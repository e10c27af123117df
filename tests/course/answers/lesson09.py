"""Right and wrong answers to what lesson 09 asks."""

from functools import partial
from typing import Any

import torch
from torch import nn

from hookviz.course import course_tools, cures
from hookviz.course.sick_net import train
from tests.course.answers.common import changed_part, raises


def no_net(seed: int = 0) -> nn.Module:
    return nn.Linear(2, 2)


class FewScores(cures.ReluBlocks):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images)[:, :3]


living_units = partial(changed_part, cures.LivingUnits)
repaired = partial(changed_part, cures.Repaired)
trains = partial(changed_part, cures.train_all)
stand_still = partial(changed_part, course_tools.stand_still)
HEAL = "nn.init.zeros_(self.neck.bias)"
TRAIN = "with register_optimizer_step_post_hook(compare):\n        training(net)"


RIGHT: dict[str, Any] = {
    "09.1": "stem, head",
    "09.2": cures.LivingUnits,
    "09.3": cures.Repaired,
    "09.4": 0,
    "09.5": cures.train_all,
    "09.6": course_tools.stand_still,
}
WRONG: dict[str, list[Any]] = {
    "09.1": ["stem", "head", "stem, body, neck, head", "body", "legs"],
    "09.2": [
        no_net,
        FewScores,
        cures.ReluBlocks,
        living_units((HEAL, "nn.init.constant_(self.neck.bias, -0.5)")),
        living_units((HEAL, f"{HEAL}\n        nn.init.constant_(self.neck.weight, 0.5)")),
        living_units(("(ReluBlocks)", "(SickNet)")),
        raises,
    ],
    "09.3": [
        no_net,
        FewScores,
        repaired(("images / 16", "images / 255")),
        repaired(("images / 16", "images")),
        repaired(
            ("features = self.body", "self.relu.register_forward_hook(self.remember)\n        features = self.body")
        ),
        repaired(("self.pool(features)", "self.pool(features.detach())")),
        repaired(("self.stem(images / 16)", "self.stem(images / 16).detach()")),
        repaired(("self.relu(self.neck(features))", "self.neck(features)")),
    ],
    "09.4": [86, 7, "a little"],
    "09.5": [
        train,
        trains(("optimizer.step()", "pass")),
        trains(("return losses", "return [1.0]")),
        trains(("momentum=0.9", "momentum=0.0")),
        raises,
    ],
    "09.6": [
        stand_still(("if name not in moved", "if name in moved")),
        stand_still((TRAIN, "training(net)\n    compare(None, (), {})")),
        stand_still(
            ("for name in before if name not in moved", "for name, p in net.named_parameters() if p.grad is None")
        ),
        stand_still(
            (
                "not torch.equal(parameter, before[name])",
                'any(parameter is one for one in optimizer.param_groups[0]["params"])',
            ),
        ),
        lambda net, training: course_tools.stand_still(net, training)[::-1],
        stand_still(
            ("moved: set[str] = set()", "moved = set()\n    register_optimizer_step_post_hook(lambda *given: None)")
        ),
        stand_still((TRAIN, f"training(net)\n    {TRAIN}")),
        lambda net, training: training(net),
        lambda net, training: training(net) or ["a"],
    ],
}
