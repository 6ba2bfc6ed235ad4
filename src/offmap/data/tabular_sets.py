"""The named data sets of features: small ones from scikit-learn, and those of ADBench with labelled anomalies."""

from typing import NamedTuple

from offmap.data.dataset import DataSet, Split
from offmap.data.sources import BundledTable, NpzSource
from offmap.data.store import File

__all__ = ["TABULAR_SETS"]


class _Row(NamedTuple):
    stem: str
    rows: int
    features: int
    anomalies: int
    sha256: str


_ADBENCH = (
    _Row("4_breastw", 683, 9, 239, "9e1344d01528f61e5125937a3f74a8f8a8b69e23ec4f1eb0db6e9b499a2dad83"),
    _Row("5_campaign", 41_188, 62, 4_640, "6d3e9630b2a983e7fac34a543dc2a66818f05a7dab17e72684398d8bc57d58b6"),
    _Row("7_Cardiotocography", 2_114, 21, 466, "8812564eac0ac5c0e0720dee379e4434f329c4b4fc6f6acb6f11f474ba81d4be"),
    _Row("8_celeba", 202_599, 39, 4_547, "07eb5df41e3e5418682be463a0e37f393e29f8770abf530a485077a6edad7c8b"),
    _Row("10_cover", 286_048, 10, 2_747, "1fc64bb2b72727c2769cc6aed0df151840705593ba728df48d058ea3a4994366"),
    _Row("12_fault", 1_941, 27, 673, "144e57a3cdd93216c1276086bf54e68ce4c5710c7a738dd66cb8e360b12d59c1"),
    _Row("14_glass", 214, 7, 9, "b926c453275f49d8ef5a92b5ff2e52109d502dada07477047a722990deb14ab4"),
    _Row("15_Hepatitis", 80, 19, 13, "f4cf9535ed49f4f5cd433aac4625b8b0da46d272ee28f31b9376c9969634bedd"),
    _Row("16_http", 567_498, 3, 2_211, "d2bac50f1d23b83c666171a61a4d04aea71b15ca87c057f1096fa430eebcaeff"),
    _Row("17_InternetAds", 1_966, 1_555, 368, "5770daec8198dd7126371e7d714c94117c128d87ea0812220033cb1f32991188"),
    _Row("19_landsat", 6_435, 36, 1_333, "dd7e22adb316c975379d0105f1b31611e47b76be482ab5b727a8a426e2078602"),
    _Row("20_letter", 1_600, 32, 100, "95c8d9380f9f64d9f475176a1e8ada9c4b32f922b1bab8190844422490154d7e"),
    _Row("21_Lymphography", 148, 18, 6, "ae033b08d3c89b85c8e8eb25a4ad1cf231ac2b9cf0b0c3a9e24480f70808c36f"),
    _Row("22_magic.gamma", 19_020, 10, 6_688, "bc1c599a8d7bb84b2579b9c93b953f7d86ff36450bbf51d809f8c1b4dccd2fab"),
    _Row("24_mnist", 7_603, 100, 700, "0f867b5645f68d4cddecc977edd815bae10fb773ea7cb77b6ce8e87eba9300a8"),
    _Row("25_musk", 3_062, 166, 97, "ffbf907c36a742cc938bc9919405b7069f939e0202bf3887fb6f4247e8e9532c"),
    _Row("27_PageBlocks", 5_393, 10, 510, "9d2ecc06112c2746eb363c231533516fc18605ee518501210cc0fc50954394fc"),
    _Row("29_Pima", 768, 8, 268, "f507d47d468b03178d317d59790cea89d4a1ffc1b06f5f2c475d5a8611e7fb14"),
    _Row("30_satellite", 6_435, 36, 2_036, "cb02c290497cb240ca13486927cb81b9f7086b0226f2e1d477306329c054dec3"),
    _Row("33_skin", 245_057, 3, 50_859, "7a5519e9d817526dee546b50a44c9563eeb7e595fba401604cf0d0633f24db79"),
    _Row("34_smtp", 95_156, 3, 30, "6790c888965c54c4a94dde4443814c56d08c958b9c853f089f5b36db85ed735b"),
    _Row("35_SpamBase", 4_207, 57, 1_679, "9c596090b5be61fdf553bf1893a7a16b64c0e38c276dc001649fbd7b608d6250"),
    _Row("37_Stamps", 340, 9, 31, "bb20743f5bca2b11b547bca1e3a0fae2248cfc908c70fd5fad49bdedf0c4a952"),
    _Row("39_vertebral", 240, 6, 30, "2a8f954625d2fed636a8e8600c474b7e533d28c0c94084fb9e5d12366d194e56"),
    _Row("41_Waveform", 3_443, 21, 100, "3588d33d636856602e5cf6e856450043921d76c41dcd73f74952e0739319dd06"),
    _Row("43_WDBC", 367, 30, 10, "d57b86782c8344f8f7ebf0e9454d621efffb193838298b2a0b6a852499be9a17"),
    _Row("44_Wilt", 4_819, 5, 257, "e562e95118c9a6ab2307d3f418918f81d083e0a0fb6588379f214aaeecddc5c1"),
    _Row("46_WPBC", 198, 33, 47, "42ad9aa69db26dcd0794ec4ced708dec29bf03815722f90c078569760ae00574"),
    _Row("47_yeast", 1_484, 8, 507, "4a8373a3e97d0a2136d0936c3c2c117d0fa7e0f404494dcb2ed73c44adf51983"),
)


def _adbench(row: _Row) -> DataSet:
    source = NpzSource(File(f"adbench/{row.stem}.npz", row.sha256), "X", "y")
    return DataSet(
        f"adbench/{row.stem.partition('_')[2].lower()}",
        "features",
        about=f"{row.features} features; label 1 marks the {row.anomalies:,} anomalies",
        licence="BSD 2-Clause (ADBench); the data under the terms of ODDS, DAMI, UCI and others",
        origin="https://github.com/Minqi824/ADBench",
        splits=(Split("all", row.rows, (source,)),),
        class_names=("normal", "anomaly"),
    )


def _bundled(name: str, rows: int, loader: str, about: str) -> DataSet:
    splits = (Split("all", rows, (BundledTable(loader),)),)
    return DataSet(name, "features", about, "CC BY 4.0 (UCI)", "bundled with scikit-learn", splits)


TABULAR_SETS = (
    _bundled("breast-cancer", 569, "load_breast_cancer", "30 features of cell nuclei, 2 classes"),
    _bundled("wine", 178, "load_wine", "13 chemical features, 3 cultivars"),
    _bundled("iris", 150, "load_iris", "4 measurements of flowers, 3 species"),
    *map(_adbench, _ADBENCH),
)
