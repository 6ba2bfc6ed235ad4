"""The named data sets of texts and tables."""

from offmap.data.dataset import DataSet, Split, Table
from offmap.data.sources import TextSource
from offmap.data.store import File

__all__ = ["TEXT_SETS"]


def _splits(stem: str, **rows_and_sha256: tuple[int, str]) -> tuple[Split, ...]:
    return tuple(
        Split(name, rows, (TextSource(File(f"text/{stem}.{name}.tsv.gz", sha256)),))
        for name, (rows, sha256) in rows_and_sha256.items()
    )


_CLINC = "https://github.com/clinc/oos-eval"
_CLINC_LICENCE = "CC BY 3.0"
_CLINC_ORIGINAL = File(
    "text/clinc150_full_original.tsv.gz", "3472f5c53d1a7a6f4abaa08e214a7dd3082d405f4af1d929d6c2a12edf1cdeb7"
)
_CLINC_ORIGINAL_ROWS = {
    "train": 15_000,
    "val": 3_000,
    "test": 4_500,
    "oos_train": 100,
    "oos_val": 100,
    "oos_test": 1_000,
}
_SENTENCES = File("text/sentences_en.tsv.gz", "87d8062eb1d7e18bb89bd6767b61469b9cd89c84a0f26c4536e81d062188c16b")

TEXT_SETS = (
    DataSet(
        "banking",
        "text",
        about="BANKING77: questions to a bank, 77 intents",
        licence="CC BY 4.0",
        origin="https://github.com/thuiar/TEXTOIR (data: PolyAI)",
        splits=_splits(
            "banking77",
            train=(9_003, "c87a2f6c22aa868f998f89a1f16b6e5e599786db0e31cfe9f3c658130638248c"),
            dev=(1_000, "eb3f3b5024c315519e9e552268a3ed96ff4091fa2c0989385f94acda602b51a2"),
            test=(3_080, "bf215f798cfa1f29c3f5222568239f8e06f85f484fce2624806bbf01929bc501"),
        ),
    ),
    DataSet(
        "clinc",
        "text",
        about="CLINC150: requests to an assistant, 150 intents; the test split also has 1,200 rows labelled oos",
        licence=_CLINC_LICENCE,
        origin=f"https://github.com/thuiar/TEXTOIR (data: {_CLINC})",
        splits=_splits(
            "clinc150_oos",
            train=(15_000, "bfe5848e889dbd3c5dc955e5866ad486042b2579244eb81d98b6674a3727d86f"),
            dev=(3_000, "9114e35dff9962873ce954becdc07c0ec9f39d9b7c27dda969b8237d53c87c69"),
            test=(5_700, "2f5e1f96e4d7c821a63a07b9fd9add8404e19338474b8422dda3560b1ed8dc7c"),
        ),
    ),
    DataSet(
        "stackoverflow",
        "text",
        about="titles of questions on StackOverflow, 20 tags",
        licence="none stated; cite Xu et al. 2015, acknowledge Kaggle",
        origin="https://github.com/thuiar/TEXTOIR (data: https://github.com/jacoxu/StackOverflow)",
        splits=_splits(
            "stackoverflow20",
            train=(12_000, "dbc74b36aa23524796e34e99fdae40e896309377a76a602afed49a028daa5ba7"),
            dev=(2_000, "7c60f622e7d73ba8208b095a311a24417709fa5dcc38de20f8a46c35ea423bba"),
            test=(6_000, "e1c2bc78d6aac80ac3fc744b490ce6ab22fff5e066d954778d6b9f0a1d3415ab"),
        ),
    ),
    DataSet(
        "clinc-original",
        "text",
        about="CLINC150 with its makers' own splits, those of out-of-scope rows apart",
        licence=_CLINC_LICENCE,
        origin=_CLINC,
        splits=tuple(
            Split(name, rows, (TextSource(_CLINC_ORIGINAL, split=name),)) for name, rows in _CLINC_ORIGINAL_ROWS.items()
        ),
    ),
    DataSet(
        "sentences",
        "text",
        about="plain English sentences of 3 to 80 words; the label is the corpus",
        licence="Brown: non-commercial use; WikiSplit: CC BY-SA 4.0; oos-eval: CC BY 3.0",
        origin=f"the Brown corpus (NLTK), WikiSplit and {_CLINC}",
        splits=(Split("all", 84_725, (TextSource(_SENTENCES, label="source"),)),),
    ),
    DataSet(
        "clinc-domains",
        "tables",
        about="the domain of each CLINC150 intent, 10 domains of 15 intents",
        licence=_CLINC_LICENCE,
        origin=_CLINC,
        tables=(
            Table(
                "domains",
                150,
                File(
                    "text/clinc150_domains.tsv.gz", "e7a8cab9d2e43b97c544764969f338144134e3292933f64d6e59ea44f3479927"
                ),
            ),
        ),
    ),
    DataSet(
        "sts",
        "tables",
        about="pairs of sentences with gold similarity: STS12 to STS16, STSB, SICK-R",
        licence="scores CC BY-SA 4.0, texts under their own terms; SICK CC BY-NC-SA 3.0",
        origin="https://github.com/facebookresearch/SentEval",
        tables=(
            Table(
                "pairs",
                31_099,
                File("text/sts_all.tsv.gz", "124dab8e7c2064b190be9cadad3f2763b6ec8da4535551f4a10f2bc19c99414a"),
                ("text_a", "text_b"),
            ),
        ),
    ),
    DataSet(
        "ml1m",
        "tables",
        about="MovieLens-1M: ratings with their order in time, users, movies",
        licence="GroupLens: research only, no redistribution, no commercial use; cite Harper & Konstan 2015",
        origin="https://grouplens.org/datasets/movielens/1m",
        tables=(
            Table(
                "ratings",
                1_000_209,
                File("ml1m/ratings.csv.gz", "44d135e61ac298f4604e93f0a389886346df30d641f208d4eca2cef8ebcaf43c"),
            ),
            Table(
                "users",
                6_040,
                File("ml1m/users.csv.gz", "f3e186e76eb452454f80a6b3c508cc27bc9ad90dbdadb28e03918f72ea50cb8b"),
                ("zip",),
            ),
            Table(
                "movies",
                3_883,
                File("ml1m/movies.csv.gz", "9c3f0b7077ef8f7213c9a6fff187c9187be618560b884d532603195bd43c3e53"),
                ("title", "genres"),
            ),
        ),
    ),
)
