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


def after_augmented_passes_over_fives(row: str) -> float:
    return mean("collaborative-cifar10-augmented-five", row, "k = 5, 20 passes, augmented", "auroc")


@pytest.mark.parametrize("row", ["label*", "learned, 64 seed tasks", "pseudo-label", "random"])
def test_the_numbers_of_a_cause_are_those_of_the_stored_results(row: str) -> None:
    plain = {k: mean("collaborative-cifar10", row, k, "auroc") for k in ("k = 2 (45 tasks)", "k = 5 (252 tasks)")}
    augmented = [passes(row, "20 passes, augmented"), after_augmented_passes_over_fives(row)]
    pairs = [(round(100 * first), round(100 * second)) for first, second in zip(plain.values(), augmented, strict=True)]
    assert all(second > first for first, second in pairs)
    two, five = pairs
    assert f"{two[0]} to {two[1]} at k = 2" in cause_of(f"CIFAR-10, {row}")
    assert cause_of(f"CIFAR-10, {row}").endswith(f"{five[0]} to {five[1]} at k = 5")


def test_longer_training_of_label_embeddings_has_the_numbers_of_its_cause() -> None:
    longer, plain = passes("label*", "40 passes, augmented"), passes("label*", "20 passes")
    assert f"40 epochs to {100 * longer:.0f}, 20 without it to {100 * plain:.0f}" in cause_of("CIFAR-10, label*")


def test_augmented_passes_bring_learned_embeddings_of_fives_above_pseudo_labels() -> None:
    learned, pseudo = map(after_augmented_passes_over_fives, ("learned, 64 seed tasks", "pseudo-label"))
    assert learned > pseudo + 0.02
    cause = cause_of("CIFAR-10, learned above pseudo-label, k = 5")
    assert cause.endswith(f"learned gets {100 * learned:.0f}, pseudo-label {100 * pseudo:.0f}")


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


FILMS = "behaviour only"


@pytest.mark.parametrize(
    ("item", "other", "metric"),
    [
        ("MovieLens, age, ratio above Gaussian", "Gaussian", "age, lift"),
        ("MovieLens, occupation, ratio above Gaussian", "Gaussian", "occupation, lift"),
        ("MovieLens, occupation, ratio above flow", "flow", "occupation, lift"),
    ],
)
def test_by_lift_the_ratio_leads_the_densities_that_counts_favour(item: str, other: str, metric: str) -> None:
    ours, theirs = (mean("collaborative-movielens", row, FILMS, metric) for row in ("ratio, learned", other))
    assert ours > theirs + 0.01
    assert f"by lift the ratio gets {100 * ours:.0f}, the {other} {100 * theirs:.0f}" in cause_of(item)


def test_among_viewers_learned_embeddings_lead_random_ones_and_get_what_the_cause_says() -> None:
    learned, drawn = (
        mean("collaborative-movielens", f"ratio, {name}", FILMS, "age, viewers") for name in ("learned", "random")
    )
    assert learned > drawn + 0.04
    assert f"learned gets {100 * learned:.0f}, random {100 * drawn:.0f}" in cause_of(
        "MovieLens, age, learned above random"
    )
    jobs = mean("collaborative-movielens", "ratio, learned", FILMS, "occupation, viewers")
    low, high = sorted((learned, jobs))
    for label in ("age", "occupation"):
        cause = cause_of(f"MovieLens, {label}, learned embeddings")
        assert f"ours gets {100 * low:.0f} to {100 * high:.0f} among viewers" in cause


@pytest.mark.parametrize("column", ["k = 3 (120 tasks)", "k = 4 (210 tasks)"])
def test_two_towers_learn_together_what_the_concatenating_network_does_not_in_six_passes(column: str) -> None:
    towers, apart = (
        mean("collaborative-cifar10-apart", row, column, "auroc") for row in ("two towers, together", "ratio, apart")
    )
    assert towers > apart + 0.1
    cause = cause_of(f"CIFAR-10, together above apart, {column}")
    assert f"two towers get {100 * towers:.0f}, apart {100 * apart:.0f}" in cause


def test_lines_whose_terms_have_as_many_units_as_the_authors_code_have_the_estimates_of_the_causes() -> None:
    for name in ("InfoNCE", "MINE", "NWJ", "CLUB"):
        row, table = f"Line {name}, growing", "total-correlation-growing"
        grown = mean("total-correlation-staircase" if name == "InfoNCE" else table, row, "TC 10", "mean")
        narrow = mean("total-correlation-staircase", f"Line {name}", "TC 10", "mean")
        assert grown > narrow + 0.9
        cause = cause_of(f"estimate at total correlation 10, Line {name}, 15 units")
        assert cause.endswith(f"ours is {grown:.3g}")


def test_the_variance_of_nwj_grows_with_the_estimate_and_that_of_infonce_hardly() -> None:
    few, many, bounded = (
        mean("total-correlation-staircase", row, column, "variance")
        for row, column in (("Tree NWJ", "TC 2"), ("Tree NWJ", "TC 10"), ("Tree InfoNCE", "TC 10"))
    )
    cause = cause_of("variance of trees at 10 nats, NWJ below InfoNCE")
    assert f"from {few:.2f} at 2 nats to {many:.2f}, that of InfoNCE to {bounded:.2f}" in cause


def test_the_authors_runs_contradict_what_the_thesis_says_of_errors_of_trees() -> None:
    table = TABLES["total-correlation-staircase"]
    theirs = {row: float(table.printed[row, "TC 10", "mean"]) for row in ("Tree InfoNCE", "Tree CLUB")}
    assert abs(theirs["Tree InfoNCE"] - 10) > abs(theirs["Tree CLUB"] - 10)
    ours = [mean(table.name, row, "TC 10", "mean") for row in theirs]
    cause = cause_of("error of trees at 10 nats, InfoNCE below CLUB")
    assert f"ours at {ours[0]:.2f} and {ours[1]:.1f}" in cause
    assert f"InfoNCE ends at {theirs['Tree InfoNCE']:.2f}" in cause


def test_the_style_code_of_a_plain_autoencoder_carries_the_digit_as_well() -> None:
    plain, separated = (100 * mean("disentangling", row, "no adversary", "acc_d") for row in ("AE", "TC"))
    assert separated > plain + 20
    assert f"its acc_d is {plain:.0f}, TC's {separated:.0f}" in cause_of("coloured digits, acc_c, TC above AE")


def test_few_sentences_tell_no_rows_apart_and_more_do() -> None:
    assert abs(gaps("sentence-views", "templates", "TC-Tree", "Core-View").mean()) < 0.5
    lead = gaps("sentence-views-many", "templates", "TC-Tree", "MI-fix").mean()
    assert f"with 20,000 sentences TC leads by {lead:.0f}" in cause_of(
        "sentences, templates, few: TC-Tree above Core-View"
    )
    small, large = (
        100 * mean(table, "TC-Tree", "templates", "mean") for table in ("sentence-views-many", "sentence-views-mpnet")
    )
    cause = cause_of("sentences, templates, mpnet: TC-Tree")
    assert f"MiniLM gets {small:.0f} from 20,000, mpnet, of BERT's size, {large:.0f} from 2,000" in cause


def test_coarser_and_paler_negatives_and_more_epochs_help_on_colour_images() -> None:
    row, column = "Bernoulli, Tiny ImageNet", "cifar10 → svhn"
    sharp = mean("vae-negatives-colour", row, column, "auroc_bpd")
    soft = mean("vae-negatives-colour", f"{row}, softened", column, "auroc_bpd")
    short = mean("vae-negatives-colour-epochs", row, "2 epochs", "auroc_bpd")
    assert soft > sharp + 0.2
    assert sharp > short + 0.2
    cause = cause_of("CIFAR-10 → SVHN, auxiliary, Bernoulli")
    assert f"2 epochs give {short:.2f}, 8 give {sharp:.2f}" in cause
    assert cause.endswith(f"they give {soft:.2f}")


def test_the_default_reference_is_what_reaches_the_density_with_two_humps() -> None:
    default, plain = (
        mean("sampling-bounded", row, "u2", "KS")
        for row in ("RAS, Beta reference", "RAS, Beta reference, as in the paper")
    )
    assert default < 0.6 * plain
    assert f"reaches {default:.4f}" in cause_of("KS on the bounded density u2, without our additions")


def test_the_forward_divergence_leaves_the_failure_as_it_is() -> None:
    column = "cifar10 → svhn"
    forward, reverse = (
        mean("vae-forward-kl", row, column, "auroc_bpd") for row in ("Gaussian, forward", "Gaussian, reverse (ELBO)")
    )
    assert abs(forward - reverse) < 0.05
    assert f"reverse: {reverse:.2f}" in cause_of("CIFAR-10 → SVHN, the forward divergence ends the failure")


def test_better_features_in_two_towers_bring_the_ratio_up() -> None:
    table = "collaborative-cifar10-pretrained-pace"
    two, four = (
        mean(table, "two towers of features, together", column, "auroc")
        for column in ("k = 2 (45 tasks)", "k = 4 (210 tasks)")
    )
    learnt = mean("collaborative-cifar10-features", "contrastive features", "CIFAR-10", "training")
    given = mean("collaborative-cifar10-pretrained-features", "EfficientNet-lite0", "CIFAR-10", "training")
    assert given > learnt + 0.2
    assert two > mean("collaborative-cifar10-apart", "ratio of features, together", "k = 2 (45 tasks)", "auroc") + 0.1
    cause = cause_of("CIFAR-10, ratio of features, together")
    assert f"finds {100 * learnt:.0f} % of the labels" in cause
    assert f"pretrained ones ({100 * given:.0f} %) in two towers give {100 * two:.0f} at k = 2" in cause
    assert cause.endswith(f"{100 * four:.0f} at k = 4")


def test_neither_better_features_nor_more_passes_bring_the_flow_up() -> None:
    column = "k = 2 (45 tasks)"
    few = mean("collaborative-cifar10-pretrained", "flow of features, apart", column, "auroc")
    many = mean("collaborative-cifar10-pretrained-pace", "flow of features, apart, 200 passes", column, "auroc")
    learnt = mean("collaborative-cifar10-apart", "flow of features, apart", column, "auroc")
    assert few < learnt + 0.02
    assert many < few - 0.05
    assert f"200 passes give {100 * many:.0f} and 20 give {100 * few:.0f}" in cause_of(
        "CIFAR-10, flow of features, together"
    )


def test_with_an_adversary_fewer_style_codes_swap_digits_better_than_diin() -> None:
    narrow = 100 * mean("disentangling-adversary-style", "TC, 16 style codes", "adversary", "acc_d")
    other = 100 * mean("disentangling-adversary", "DIIN", "adversary", "acc_d")
    assert narrow > other + 5
    assert cause_of("coloured digits, acc_d, adversary, TC above DIIN").endswith(f"{narrow:.0f}, DIIN {other:.0f}")


def test_the_adversary_costs_total_correlation_its_images() -> None:
    alone = mean("disentangling", "TC", "no adversary", "res_l2")
    assert mean("disentangling-adversary", "TC", "adversary", "res_l2") > alone + 15
    assert f"TC gets {alone:.0f}" in cause_of("coloured digits, res_l2, adversary, TC above DIIN")


def test_the_images_of_total_correlation_and_of_a_plain_autoencoder_are_within_noise() -> None:
    samples, _ = read_samples(TABLES["disentangling"], "cpu", RESULTS)
    ours, plain = (samples[row, "no adversary", "res_l2"] for row in ("TC", "AE"))
    apart = max(plain.values.values()) - min(plain.values.values())
    expected = f"{ours.mean:.0f} against {plain.mean:.0f}, whose seeds lie {apart:.0f} apart"
    assert cause_of("coloured digits, res_l2, TC above AE").endswith(expected)


@pytest.mark.parametrize("name", ["Bernoulli", "Gaussian"])
def test_the_likelihood_of_models_with_generated_negatives_gains_from_more_epochs(name: str) -> None:
    few = mean("vae-negatives-epochs", f"{name}, generated", "2 epochs", "auroc_bpd")
    more = mean("vae-negatives", f"{name}, generated", "fashion-mnist → mnist", "auroc_bpd")
    assert more > few + 0.2
    cause = cause_of(f"Fashion-MNIST → MNIST, generated, by BPD, {name}")
    assert f"2 epochs give {few:.2f} and 8 give {more:.2f}" in cause


def test_more_epochs_undo_what_generated_negatives_bring_on_colour_images() -> None:
    row, column = "Gaussian, generated", "cifar10 → svhn"
    few = mean("vae-negatives-colour-epochs", row, "2 epochs", "auroc_bpd")
    more = mean("vae-negatives-colour", row, column, "auroc_bpd")
    without = mean("vae-noise-colour", "Gaussian", column, "auroc_bpd")
    assert few > more + 0.1 > without + 0.2
    cause = cause_of("CIFAR-10 → SVHN, generated, by BPD, Gaussian")
    assert f"2 epochs give {few:.2f} and 8 give {more:.2f}, 8 without negatives {without:.2f}" in cause
