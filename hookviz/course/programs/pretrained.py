import warnings

from torchvision.models import resnet18

with warnings.catch_warnings(record=True, action="always") as caught:
    resnet18(pretrained=False)
print("pretrained=False:", caught[0].message)

with warnings.catch_warnings(record=True, action="always") as caught:
    resnet18(weights=None)
print("weights=None:", caught or "no warning")
