"""The stored results that the causes on the page of verdicts rest on, and that no line lacks a cause."""

import re

import numpy as np
import pytest

from offmap.arrays import FloatArray
from offmap_bench import everything
from offmap_bench.claims import Claim, judge
from offmap_bench.papers import PAPERS
from offmap_bench.papers.page import Page
from offmap_bench.places import RESULTS
from offmap_bench.samples import read_samples
from offmap_bench.table import Table
from offmap_bench.tables.sampling_mujoco import RLLAB

TABLES = {item.name: item for item in everything() if isinstance(item, Table)}
# The page of open-world classification has tests of its own.
PAGES = [page for page in PAPERS if page.name != "open-set"]
UNTESTED = re.compile("not known|not tested|not on this|not on their|in a trial|varies between")


def mean(table: str, row: str, column: str, metric: str) -> float:
    """The mean of a stored cell over its seeds, of which there is at least one."""
    sample = read_samples(TABLES[table], "cpu", RESULTS)[0][row, column, metric]
    assert sample.values, f"{row} of {table} was not run for {column}"
    assert not sample.stale, f"{row} of {table} was run with other parameters for {column}"
    return sample.mean


@pytest.mark.parametrize(
    ("page", "claim"), [pytest.param(page, claim, id=claim.item) for page in PAGES for claim in page.claims]
)
def test_a_line_that_is_not_reached_has_a_cause_that_was_tested(page: Page, claim: Claim) -> None:
    samples, _ = read_samples(TABLES[claim.table], "cpu", RESULTS)
    found = judge(claim, TABLES[claim.table], samples)
    assert found.outcome != "not run"
    if found.outcome in ("not reached", "contradicted"):
        assert claim.cause
        assert not UNTESTED.search(claim.cause), claim.cause


def passes(row: str, column: str) -> float:
    table = "collaborative-cifar10-passes" if row == "label*" else "collaborative-cifar10-augmented"
    return mean(table, row, column, "auroc")


def test_augmentation_and_not_the_number_of_passes_brings_label_embeddings_up() -> None:
    six = mean("collaborative-cifar10", "label*", "k = 2 (45 tasks)", "auroc")
    plain, augmented = passes("label*", "20 passes"), passes("label*", "20 passes, augmented")
    assert abs(plain - six) < 0.015
    assert augmented > plain + 0.03
    assert passes("label*", "40 passes, augmented") > augmented + 0.01
    assert passes("label*", "20 passes, augmented, half the width") < augmented - 0.015
    assert passes("label*", "40 passes over half the images, augmented") < augmented - 0.005


@pytest.mark.parametrize("row", ["learned, 64 seed tasks", "pseudo-label", "random"])
def test_augmented_passes_bring_the_other_embeddings_up(row: str) -> None:
    six = mean("collaborative-cifar10", row, "k = 2 (45 tasks)", "auroc")
    assert passes(row, "20 passes, augmented") > six + 0.03


@pytest.mark.parametrize("row", ["label*", "learned, 64 seed tasks", "pseudo-label", "random"])
def test_the_numbers_of_a_cause_are_those_of_the_stored_results(row: str) -> None:
    (cause,) = (claim.cause for page in PAGES for claim in page.claims if claim.item == f"CIFAR-10, {row}")
    passed, before, after = map(int, re.findall(r"(\d+) epochs with augmentation raise (\d+) to (\d+)", cause)[0])
    assert before == round(100 * mean("collaborative-cifar10", row, "k = 2 (45 tasks)", "auroc"))
    assert after == round(100 * passes(row, f"{passed} passes, augmented"))


def test_augmented_passes_bring_transfer_to_triples_up() -> None:
    six = mean("collaborative-cifar10-transfer", "k = 2", "CIFAR-10", "n = 3")
    more = mean("collaborative-cifar10-transfer-passes", "k = 2", "20 passes, augmented", "n = 3")
    assert more > six + 0.02
    (cause,) = (claim.cause for page in PAGES for claim in page.claims if claim.metric == "n = 3")
    assert cause.endswith(f"raise {100 * six:.0f} to {100 * more:.0f}")


def test_the_default_detector_of_entities_is_as_good_and_as_quick_to_extend_as_was_asked() -> None:
    default = "ratio, the default"
    for metric in ("seen", "added"):
        assert mean("collaborative-mixtures", default, "12 Gaussians, 30 rows each", metric) > 0.80
    samples, _ = read_samples(TABLES["collaborative-mixtures"], "cpu", RESULTS)
    took = samples[default, "12 Gaussians, 30 rows each", "ms to add one"].values
    assert np.median(list(took.values())) < 2


def test_the_page_states_how_many_labels_the_features_hold() -> None:
    found = mean("collaborative-cifar10-features", "contrastive features", "CIFAR-10", "training")
    (page,) = (page for page in PAGES if page.name == "collaborative")
    assert any(here.startswith(f"{100 * found:.1f} %") for here in page.differences.values())


@pytest.mark.parametrize("column", ["1,000 entities", "100,000 entities"])
def test_adding_to_the_default_takes_under_two_milliseconds_at_any_number_of_entities(column: str) -> None:
    assert mean("speed-collaborative-adding", "ratio, mixture", column, "ms, add_entity") < 2


@pytest.mark.parametrize("metric", ["seen", "added"])
@pytest.mark.parametrize("choice", ["k-centre", "leverage"])
@pytest.mark.parametrize("count", [5, 20])
def test_the_choice_of_seed_entities_matters_where_the_notes_say_so(count: int, choice: str, metric: str) -> None:
    samples, _ = read_samples(TABLES["collaborative-digits"], "cpu", RESULTS)
    chosen, drawn = (
        samples[f"learned, {count} seeds {name}", "digits, 5 of 10 classes each", metric].values
        for name in (choice, "at random")
    )
    gaps = np.array([chosen[seed] - drawn[seed] for seed in drawn])
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    assert (abs(gaps.mean()) > 2 * error) == ((count, choice, metric) == (5, "k-centre", "added"))


def test_more_images_bring_the_gaussian_up_on_grey_images() -> None:
    few = mean("vae-forward-kl", "Gaussian, reverse (ELBO)", "fashion-mnist → mnist", "auroc_bpd")
    assert mean("vae-noise", "Gaussian", "fashion-mnist → mnist", "auroc_bpd") > few + 0.04


def test_generated_negatives_on_grey_images_gain_from_six_more_epochs() -> None:
    row, column = "Bernoulli, generated", "fashion-mnist → mnist"
    few = read_samples(TABLES["vae-negatives-epochs"], "cpu", RESULTS)[0][row, "2 epochs", "auroc_kl"]
    more = read_samples(TABLES["vae-negatives"], "cpu", RESULTS)[0][row, column, "auroc_kl"]
    assert len(few.values) == len(more.values) == 3
    assert all(more.values[seed] > few.values[seed] for seed in few.values)
    (cause,) = (
        claim.cause for page in PAGES for claim in page.claims if claim.item.endswith("MNIST, generated, by KL")
    )
    assert f"2 epochs give {few.mean:.2f} and 8 give {more.mean:.2f}" in cause


def test_generated_negatives_on_colour_images_are_near_chance_after_two_and_after_eight_epochs() -> None:
    few = mean("vae-negatives-colour-epochs", "Bernoulli, generated", "2 epochs", "auroc_kl")
    more = mean("vae-negatives-colour", "Bernoulli, generated", "cifar10 → svhn", "auroc_kl")
    assert abs(few - more) < 0.1
    assert 0.4 < more < 0.6
    (cause,) = (claim.cause for page in PAGES for claim in page.claims if claim.item.endswith("SVHN, generated, by KL"))
    assert f"2 epochs give {few:.2f}, 8 give {more:.2f}" in cause


def returned(row: str, column: str, table: str = "mujoco") -> float:
    return mean(table, row, column, "return")


def cause_of(item: str) -> str:
    (cause,) = (claim.cause for page in PAGES for claim in page.claims if claim.item == item)
    return cause


@pytest.mark.parametrize("row", ["RAS", "SVGD", "SAC"])
def test_no_learner_swims_in_the_water_of_rllab_where_a_gait_of_two_numbers_does(row: str) -> None:
    assert returned(row, RLLAB) < 10
    assert returned("sine gait, best of 30", RLLAB) > 70


@pytest.mark.parametrize("row", ["RAS", "SVGD", "SAC"])
def test_learners_stay_at_the_known_local_optimum_of_swimmer_v5(row: str) -> None:
    assert 25 < returned(row, "Swimmer-v5") < 50
    assert returned("sine gait, best of 30", "Swimmer-v5") > 100


def test_the_cause_on_swimmer_has_the_stored_numbers() -> None:
    cause = cause_of("return on Swimmer")
    assert f"SAC {returned('SAC', RLLAB):.0f}" in cause
    assert f"sine gait {returned('sine gait, best of 30', RLLAB):.0f}" in cause


def test_more_steps_teach_the_cheetah_to_run() -> None:
    few, many = returned("RAS", "HalfCheetah-v5"), returned("RAS", "HalfCheetah-v5", "mujoco-longer")
    assert many > few + 500
    assert f"30,000 give {few:.0f}" in cause_of("return on HalfCheetah")


@pytest.mark.parametrize(
    ("row", "table"),
    [("RAS", "mujoco"), ("SVGD", "mujoco"), ("SAC", "mujoco"), ("RAS", "mujoco-longer")],
    ids=lambda name: name,
)
def test_hopper_stays_where_it_is_whatever_the_method_and_the_steps(row: str, table: str) -> None:
    assert 150 < returned(row, "Hopper-v5", table) < 190
    assert f"SAC {returned('SAC', 'Hopper-v5'):.0f}" in cause_of("return on Hopper")


def gaps(table: str, column: str, row: str, other: str) -> FloatArray:
    """How far one row of sentences is above another, in points, seed by seed."""
    samples, _ = read_samples(TABLES[table], "cpu", RESULTS)
    ours, theirs = (samples[name, column, "mean"].values for name in (row, other))
    return 100 * np.array([ours[seed] - theirs[seed] for seed in sorted(ours)])


def test_total_correlation_beats_pairs_of_templates_where_training_is_long_enough() -> None:
    assert (gaps("sentence-views-many", "templates", "TC-Tree", "MI-fix") > 1).all()
    assert abs(gaps("sentence-views", "templates", "TC-Tree", "MI-fix").mean()) < 0.3


@pytest.mark.parametrize("row", ["MI-fix", "TC-Tree"])
def test_twelve_steps_with_dropout_hardly_move_the_encoder(row: str) -> None:
    assert abs(gaps("sentence-views", "dropout", row, "before training").mean()) < 0.55
    assert "at most 0.5 points" in cause_of("sentences, dropout: TC-Tree above MI-fix")
