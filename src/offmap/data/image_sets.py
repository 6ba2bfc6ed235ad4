"""The named data sets of images."""

import string

from offmap.data.dataset import DataSet, Split
from offmap.data.sources import BundledImages, IdxSource, NpzSource, Source
from offmap.data.store import File

__all__ = ["IMAGE_SETS"]


def _split(name: str, rows: int, file: File, *official: Source, names: str | None = None) -> Split:
    return Split(name, rows, (NpzSource(file, f"x_{name}", f"y_{name}", names), *official))


def _idx(folder: str, address: str, prefix: str, images_sha256: str, labels_sha256: str) -> IdxSource:
    images, labels = f"{prefix}-images-idx3-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz"
    return IdxSource(
        File(f"{folder}/{images}", images_sha256, f"{address}/{images}"),
        File(f"{folder}/{labels}", labels_sha256, f"{address}/{labels}"),
    )


_ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_MNIST_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist"
_CODH = "http://codh.rois.ac.jp/kmnist/dataset/kmnist"
_TORONTO = "https://www.cs.toronto.edu/~kriz/cifar.html"

_FASHION_MNIST = File("fashion_mnist.npz", "c2c37d617253c9f5a6fc23ba8553045734f3682da04a81934b27e6c7c2363beb")
_MNIST = File("mnist.npz", "094b831e432331f1f6d6829ab9bfff4551410a81e1f816c9cce482d3e9b3ba57")
_CIFAR10 = File("cifar10_20k_5k.npz", "42da20cc3b23fe759c029c22280c44d4e1c3f8b2da7b13fe496ab848ddff86b4")
_SVHN = File("svhn_crop_10k_5k.npz", "79838f633afa15e359b36aafd47bd82edf17afc644d58565823b56e11d2f8d39")
_CIFAR100 = File("cifar100_test5k.npz", "4ef2035e1385874534980985582a95c87db72124b1fd9b51856db46f0b03d22d")
_TINY_IMAGENET = File("tinyimagenet32_6k.npz", "9970b46430aefe2274d6fde25368e86cdd70c46e261c9ce3204e34fc5093ac9d")
_KMNIST = File("kmnist_test10k.npz", "4ec003eed9f86f274e138699e23d85b6847713045e13026600e7d825c49d45f8")
_LETTERS = File("az_letters_5k.npz", "3b75bf9df3a01992578597ae7aae6bdf333d31eb7fe38d69a73934eea7f71060")

IMAGE_SETS = (
    DataSet(
        "digits",
        "images",
        about="handwritten digits, 8x8, floats in [0, 1]",
        licence="CC BY 4.0 (UCI)",
        origin="bundled with scikit-learn",
        splits=(Split("all", 1797, (BundledImages(),)),),
        class_names=tuple(string.digits),
    ),
    DataSet(
        "fashion-mnist",
        "images",
        about="greyscale images of clothes, 28x28, 10 classes",
        licence="MIT (Zalando SE)",
        origin=_ZALANDO,
        splits=(
            _split(
                "train",
                60_000,
                _FASHION_MNIST,
                _idx(
                    "fashion-mnist",
                    _ZALANDO,
                    "train",
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                ),
            ),
            _split(
                "test",
                10_000,
                _FASHION_MNIST,
                _idx(
                    "fashion-mnist",
                    _ZALANDO,
                    "t10k",
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
            ),
        ),
        class_names=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
    ),
    DataSet(
        "mnist",
        "images",
        about="handwritten digits, 28x28",
        licence="none stated; LeCun, Cortes, Burges",
        origin=_MNIST_MIRROR,
        splits=(
            _split(
                "train",
                60_000,
                _MNIST,
                _idx(
                    "mnist",
                    _MNIST_MIRROR,
                    "train",
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                ),
            ),
            _split(
                "test",
                10_000,
                _MNIST,
                _idx(
                    "mnist",
                    _MNIST_MIRROR,
                    "t10k",
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
            ),
        ),
        class_names=tuple(string.digits),
    ),
    DataSet(
        "cifar10",
        "images",
        about="colour images of objects, 32x32x3: the first 2,000 training and 500 test images of each class",
        licence="none stated; cite Krizhevsky 2009",
        origin=_TORONTO,
        splits=(_split("train", 20_000, _CIFAR10), _split("test", 5_000, _CIFAR10)),
        class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    ),
    DataSet(
        "svhn",
        "images",
        about="house-number digits, 32x32x3: a random sample, cropped from the full-number images",
        licence="non-commercial use only; cite Netzer et al. 2011",
        origin="http://ufldl.stanford.edu/housenumbers",
        splits=(_split("train", 10_000, _SVHN), _split("test", 5_000, _SVHN)),
        class_names=tuple(string.digits),
    ),
    DataSet(
        "cifar100",
        "images",
        about="colour images of objects, 32x32x3: 50 test images of each of 100 classes",
        licence="none stated; cite Krizhevsky 2009",
        origin=_TORONTO,
        splits=(_split("test", 5_000, _CIFAR100, names="class_names"),),
    ),
    DataSet(
        "tiny-imagenet",
        "images",
        about="colour images of objects, downsampled to 32x32x3: 30 training images of each of 200 classes",
        licence="none stated; ImageNet terms: non-commercial research",
        origin="https://www.image-net.org",
        splits=(_split("train", 6_000, _TINY_IMAGENET, names="class_names"),),
    ),
    DataSet(
        "kmnist",
        "images",
        about="handwritten Japanese syllables, 28x28, 10 classes",
        licence='CC BY-SA 4.0 ("KMNIST Dataset" created by CODH)',
        origin=_CODH,
        splits=(
            _split(
                "test",
                10_000,
                _KMNIST,
                _idx(
                    "kmnist",
                    _CODH,
                    "t10k",
                    "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
                    "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
                ),
            ),
        ),
        class_names=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    ),
    DataSet(
        "letters",
        "images",
        about="handwritten capital letters, 28x28, 26 classes of uneven size",
        licence="not stated",
        origin='the Kaggle set "A-Z Handwritten Alphabets", derived from NIST',
        splits=(_split("test", 5_934, _LETTERS),),
        class_names=tuple(string.ascii_uppercase),
    ),
)
