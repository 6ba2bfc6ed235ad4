"""Adversarial sampling from unnormalised densities."""

from offmap_bench.claims import Claim
from offmap_bench.papers.page import Page
from offmap_bench.tables.sampling_mujoco import RLLAB

# Locomotion: the task, its column and the cause.
_ABOVE = (
    ("HalfCheetah", "HalfCheetah-v5", "within noise: the returns of three seeds differ by a thousand"),
    ("Hopper", "Hopper-v5", "within noise: five seeds of six return 130 to 200"),
    ("Swimmer", RLLAB, "within noise: neither swims well"),
)
_RETURNS = (
    ("HalfCheetah", "HalfCheetah-v5", "120,000 steps of a million; 30,000 give -388"),
    (
        "Hopper",
        "Hopper-v5",
        "RAS and SAC stop near 170: SAC 181 with 30,000 steps, RAS with 30,000 and with 120,000 of a million",
    ),
    ("Swimmer", RLLAB, "120,000 steps instead of 500,000; 30,000 give 1 (SAC 4, a fixed sine gait 82)"),
)

PAGE = Page(
    name="sampling",
    title="Sampling from unnormalised densities (thesis, chapter 5)",
    about="A generator that draws from a density known up to a constant, in one forward pass.",
    items=(
        "sampling-toys",
        "sampling-toys-figure",
        "sampling-bounded",
        "sampling-gans",
        "sampling-gans-figure",
        "vae-posterior",
        "vae-posterior-samples",
        "multi-goal",
        "multi-goal-paths",
        "pendulum",
        "mujoco",
        "mujoco-longer",
    ),
    claims=(
        *(
            Claim(
                item=f"symmetric KL, {column}, with entropy",
                table="sampling-toys",
                row="RAS, both",
                columns=(column,),
                metric="symmetric KL",
            )
            for column in ("8-GMM", "pot1_hard", "pot2")
        ),
        Claim(
            item="symmetric KL, entropy helps",
            table="sampling-toys",
            row="RAS, both",
            above="RAS, no entropy",
            columns=("8-GMM", "pot1_hard", "pot2"),
            metric="symmetric KL",
        ),
        *(
            Claim(
                item=f"KS on the bounded density {column}",
                table="sampling-bounded",
                row="RAS, Beta reference",
                columns=(column,),
                metric="KS",
            )
            for column in ("u1", "u2")
        ),
        *(
            Claim(
                item=f"KS on the bounded density {column}, without our additions",
                table="sampling-bounded",
                row="RAS, Beta reference, as in the paper",
                columns=(column,),
                metric="KS",
                cause="one Beta and one Gaussian as noise: u2 has two humps; the default, a mixture, reaches 0.0035",
            )
            for column in ("u1", "u2")
        ),
        Claim(
            item="KS, Beta reference above Gaussian",
            table="sampling-bounded",
            row="RAS, Beta reference",
            above="RAS, Gaussian reference",
            metric="KS",
        ),
        *(
            Claim(
                item=f"KS on the bounded density {column}, Gaussian reference",
                table="sampling-bounded",
                row="RAS, Gaussian reference",
                columns=(column,),
                metric="KS",
            )
            for column in ("u1", "u2")
        ),
        *(
            Claim(
                item=f"symmetric KL, entropy helps {name}",
                table="sampling-gans",
                row=f"{name} + entropy",
                above=name,
                metric="symmetric KL",
            )
            for name in ("GAN", "SN-GAN")
        ),
        Claim(
            item="goals reached of four, above SVGD",
            table="multi-goal",
            row="RAS",
            above="SVGD",
            metric="goals",
            cause="within noise: both reach nearly all goals",
        ),
        *(
            Claim(
                item=f"return on {task}, above SVGD",
                table="mujoco-longer",
                row="RAS",
                above="SVGD",
                columns=(column,),
                metric="return",
                cause=cause,
            )
            for task, column, cause in _ABOVE
        ),
        *(
            Claim(
                item=f"return on {task}",
                table="mujoco-longer",
                row="RAS",
                columns=(column,),
                metric="return",
                cause=cause,
            )
            for task, column, cause in _RETURNS
        ),
    ),
    differences={
        "50,000 to 100,000 steps": "fewer steps; the table states them",
        "reinforcement learning for a million steps": "20,000 steps of Pendulum, 30,000 and 120,000 of Swimmer, "
        "HalfCheetah and Hopper, and 45,000 of the multi-goal task",
        "an update after each step of the environment": "one after ten, so 11,900 in the longest runs; "
        "hidden layers of 64 units",
        "a Swimmer of its own": "that of rllab, which the released code of soft Q-learning has; Swimmer-v5 beside it",
        "a pure Beta reference": "a tenth of it is uniform over the box; the row without is shown too",
        "one Gaussian as the noise": "a mixture with learnt weights where the row does not say otherwise",
        "one reference with the moments of all samples": "one per component of the noise where that is a mixture",
    },
)
