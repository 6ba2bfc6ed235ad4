"""Digit, colour and style of an image in codes that share nothing: models, data, and how well the codes control."""

from offmap.dependence.disentangle.autoencoder import AEDisentangler
from offmap.dependence.disentangle.base import Disentangler
from offmap.dependence.disentangle.codes import Codes
from offmap.dependence.disentangle.colour import ColourDigits, bundled_digits, colour_digits, paint
from offmap.dependence.disentangle.flow import DIINDisentangler
from offmap.dependence.disentangle.judge import DigitJudge, learn_to_judge
from offmap.dependence.disentangle.tc import TCDisentangler
from offmap.dependence.disentangle.transfer import Control, control, grid, partners
from offmap.dependence.disentangle.vae import VAEDisentangler

__all__ = [
    "AEDisentangler",
    "Codes",
    "ColourDigits",
    "Control",
    "DIINDisentangler",
    "DigitJudge",
    "Disentangler",
    "TCDisentangler",
    "VAEDisentangler",
    "bundled_digits",
    "colour_digits",
    "control",
    "grid",
    "learn_to_judge",
    "paint",
    "partners",
]
