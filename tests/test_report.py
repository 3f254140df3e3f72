from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree import KFreeClassifier
from kfree.label_noise import WrongLabels
from kfree.page import (
    Bars,
    Beside,
    Block,
    Calibration,
    Card,
    Cards,
    Code,
    Details,
    Files,
    Line,
    Lines,
    Picture,
    Points,
    Section,
    Table,
    Terms,
    Text,
    Tile,
    Tiles,
    axis,
    render,
)
from kfree.report import make_report
from kfree.report.chapters import calibration, which_columns
from kfree.report.comparison import (
    COMMONEST,
    KFREE,
    KNN,
    FittedFold,
    compare,
)
from kfree.report.confusions import confusions
from kfree.report.findings import calibration_by_chance
from kfree.report.headline import (
    by_folds,
    calibration_words,
    label_words,
    missed_notice,
    one_column_notice,
    quality_words,
    tiles,
    verdict,
)
from kfree.report.importance import column_importance
from kfree.report.neighbors import how_many_neighbors
from kfree.report.rows import suspicious, uncertain
from kfree.report.wording import cell, number, signed
from kfree.tables import TablePreparation

HOSTILE = "<script>alert(1)</script>"
PHONE, DESK, WIDE = 390, 1280, 1920


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def all(self, name):
        return [attrs for tag, attrs in self.found if tag == name]


@pytest.fixture(scope="module")
def table():
    """Numbers, a category with gaps and an identifier; a hostile class, and one of one row."""
    generator = np.random.default_rng(0)
    names = np.array(["groß", "klein", HOSTILE])
    labels = np.repeat(names, 20)
    center = np.repeat([0.0, 2.0, 4.0], 20)
    frame = pd.DataFrame(
        {
            "Kennung": [f"A-{i:03}" for i in range(60)],
            "Länge <cm>": center + generator.normal(size=60),
            "weight & co": center + generator.normal(size=60),
            "colour": generator.choice(["red", 'a"b', None], 60),
        }
    )
    frame.loc[3, "Länge <cm>"] = np.nan
    labels[-1] = "only one"
    # A wrong label to be found.
    labels[0], frame.loc[0, ["Länge <cm>", "weight & co"]] = "groß", 4.0
    return frame, labels


@pytest.fixture(scope="module")
def report(table):
    model = make_pipeline(TablePreparation(), KFreeClassifier())
    title = f"A page about {HOSTILE}"
    return make_report(*table, model=model, title=title, notes=["read with <care>"])


@pytest.fixture(scope="module")
def page_file(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report.html, encoding="utf-8")
    return path


# What is measured.


def test_scores_are_leave_one_out(table, report):
    _, labels = table
    found = report.findings
    assert found.scores.accuracy == pytest.approx(found.classifier.score(None, labels))
    assert found.confusion.sum() == len(labels)
    assert np.trace(found.confusion) == round(found.scores.accuracy * len(labels))
    low, high = found.accuracy_interval
    assert low < found.scores.accuracy < high
    p = found.probabilities.max(axis=1)
    assert (np.diff(p[found.most_uncertain]) >= 0).all()


def test_rows_are_left_out_once(monkeypatch):
    """Also the draws of a sampler without a seed are then the same in all chapters."""
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    asked, posterior = [], KFreeClassifier.posterior
    monkeypatch.setattr(
        KFreeClassifier, "posterior", lambda self, X: asked.append(X) or posterior(self, X)
    )
    proba = KFreeClassifier.predict_proba

    def only_new(self, X):
        assert X is not None
        return proba(self, X)

    monkeypatch.setattr(KFreeClassifier, "predict_proba", only_new)
    found = make_report(X, y, model=KFreeClassifier(k_max=8)).findings
    assert asked == [None]
    p = found.probabilities[found.audit.rows]
    np.testing.assert_array_equal(found.audit.given_probability, p[range(60), y[found.audit.rows]])


def test_comparison_on_folds():
    X, y = make_blobs(80, centers=3, cluster_std=1.2, random_state=0)
    steps = []
    found, fold = compare(None, KFreeClassifier(k_max=8), X, y, steps.append)
    assert list(found.scores) == [KFREE, KNN, COMMONEST]
    assert len(found.knn_k) == found.n_splits == len(steps) == 4
    assert found.n_unknown == 0
    gap = found.scores[KFREE].accuracy - found.scores[KNN].accuracy
    assert gap * len(y) == pytest.approx(found.n_only_kfree - found.n_only_knn)
    assert found.scores[KFREE].accuracy > found.scores[COMMONEST].accuracy + 0.3
    for name, losses in found.log_losses.items():
        assert losses.mean() == pytest.approx(found.scores[name].log_loss)
    # The last fold's model does not know its rows.
    assert len(fold.rows) == 20 and fold.classifier.predict_proba(None).shape == (60, 3)


def test_a_column_that_decides_matters_and_noise_does_not():
    generator = np.random.default_rng(1)
    y = np.repeat([0, 1], 60)
    X = np.column_stack([generator.normal(size=120), 4.0 * y + generator.normal(size=120)])
    rest, rows = np.arange(120)[::2], np.arange(120)[1::2]
    fold = FittedFold(None, KFreeClassifier(k_max=8).fit(X[rest], y[rest]), rows)
    found = column_importance(fold, X, y)
    assert found.columns.tolist() == [1, 0] and found.n_rows == 60
    assert found.rise[0] > 0.5 and found.rise[0] > 4 * found.error[0]
    assert abs(found.rise[1]) < 0.2
    # The numbers are those of shuffling by hand, and the table itself stays as it is.
    before = X.copy()
    again = column_importance(fold, X, y, unused=[0])
    assert again.columns.tolist() == [1] and again.rise[0] == pytest.approx(found.rise[0])
    np.testing.assert_array_equal(X, before)
    # No time at all: nothing is measured, and that is said.
    none = column_importance(fold, X, y, most_seconds=-1.0)
    assert none.n_not_measured == 2 and len(none.columns) == 0


def test_classes_that_only_a_fold_has_do_not_disturb(report, table):
    important = report.findings.importance
    assert {report.findings.columns[j].name for j in important.columns} == {
        "Länge <cm>",
        "weight & co",
        "colour",
    }
    assert set(report.findings.summary()["log_loss_rise_without_column"]) >= {"colour"}


def test_only_the_k_that_matter_are_drawn():
    """Candidates need not be 1, 2, 3, ...: their own numbers are drawn."""
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    found = make_report(X, y, model=KFreeClassifier(k_max=8)).findings
    about = replace(
        found.held_out.k,
        k=np.array([1, 2, 40, 48, 56, 64]),
        probabilities=np.array([1e-9, 1e-5, 0.3, 0.6, 0.1, 1e-5]),
        best=48,
    )
    thin = replace(found, held_out=replace(found.held_out, k=about))
    words, picture = how_many_neighbors(thin)[0].blocks
    assert [bar[0] for bar in picture.bars] == [40.0, 48.0, 56.0]
    assert "neighbors is 48 (probability 0.60)" in words.words
    assert picture.x.low < 40 and picture.x.high > 56


class WithoutK(KFreeClassifier):
    """A classifier with leave-one-out probabilities and no posterior of k."""

    @property
    def posterior(self):
        raise AttributeError("posterior")

    def predict_proba(self, X):
        return (
            KFreeClassifier(**self.get_params()).fit(*self._rows).posterior(X).class_probabilities
        )

    def fit(self, X, y):
        self._rows = X, y
        return super().fit(X, y)


def test_a_classifier_without_k_has_a_page_without_it(table):
    X, y = make_blobs(60, centers=3, cluster_std=3.0, random_state=0)
    page = make_report(X, y, model=WithoutK(k_max=8))
    assert page.findings.held_out.k is None and page.findings.summary()["k_most_probable"] is None
    names = [section["id"] for section in Tags(page.html).all("section")]
    assert "k" not in names and "labels" in names
    assert "not knowing k" not in page.html and "Posterior of k" not in page.html


def test_classes_of_one_row_are_counted(report):
    assert report.findings.comparison.n_unknown == 1
    assert "1 row has a class that occurs only in one fold" in report.html
    assert "&#39;only one&#39; (1)" in report.html


def test_chance_alone_makes_a_calibration_error():
    generator = np.random.default_rng(5)
    confidence = generator.uniform(0.4, 1.0, 120)
    bound = calibration_by_chance(confidence)
    bins = (confidence * 10).astype(int)
    errors = [
        np.abs(np.bincount(bins, weights=confidence - (generator.random(120) < confidence))).sum()
        / 120
        for _ in range(400)
    ]
    # 5% with a standard error of 1.1%.
    assert 0.015 < np.mean(np.array(errors) > bound) < 0.095
    # And it shrinks with the number of rows.
    assert calibration_by_chance(np.tile(confidence, 16)) < 0.4 * bound


def test_a_large_k_max_does_not_stop_the_folds():
    X, y = make_blobs(24, centers=2, random_state=0)
    found = make_report(X, y, model=KFreeClassifier(k_max=23)).findings
    assert found.classifier.k_max_ == 23 and found.comparison is not None


def test_polars_frames_have_columns(table):
    polars = pytest.importorskip("polars")
    frame, labels = table
    found = make_report(polars.from_pandas(frame.iloc[:40]), labels[:40]).findings
    assert [column.name for column in found.columns] == list(frame.columns)
    assert found.columns[1].n_missing == 1


def test_too_few_rows_for_folds():
    X = np.array([[0.0], [0.1], [5.0]])
    found = make_report(X, ["a", "a", "b"])
    assert found.findings.comparison is None
    assert "too few rows to compare" in found.html


# What the page says.


def test_page_loads_nothing(report):
    tags = Tags(report.html)
    assert not tags.all("link") and not tags.all("iframe")
    assert not tags.all("img") and len(tags.all("svg")) > 20
    assert not [script for script in tags.all("script") if "src" in script]
    assert "@import" not in report.html and "url(" not in report.html
    sections = [f"#{section['id']}" for section in tags.all("section")]
    assert [link["href"] for link in tags.all("a")] == sections


def test_policy_allows_the_one_script_only(report):
    script = re.search(r"<script>(.*?)</script>", report.html, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(m["content"] for m in Tags(report.html).all("meta") if "http-equiv" in m)
    assert "default-src 'none'" in policy and f"'sha256-{digest}'" in policy
    assert len(Tags(report.html).all("script")) == 1


def test_text_from_data_is_escaped(report):
    assert HOSTILE not in report.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in report.html
    assert "Länge &lt;cm&gt;" in report.html and "weight &amp; co" in report.html
    assert "read with &lt;care&gt;" in report.html


TICKS = axis(0.0, 1.0, name=HOSTILE)
HOSTILE_TABLE = Table(HOSTILE, (HOSTILE, "b"), ((HOSTILE + "\n" + HOSTILE, HOSTILE),))
HOSTILE_BLOCKS = [
    Text(HOSTILE),
    Points((HOSTILE,)),
    Terms(((HOSTILE, HOSTILE),)),
    Code(HOSTILE),
    Files(HOSTILE, (HOSTILE,)),
    Tiles((Tile(HOSTILE, HOSTILE, HOSTILE),)),
    HOSTILE_TABLE,
    Picture(HOSTILE, b"", HOSTILE, HOSTILE),
    Cards((Card(HOSTILE, HOSTILE, HOSTILE_TABLE),)),
    Beside((Text(HOSTILE),)),
    Details(HOSTILE, (Text(HOSTILE),)),
    Lines(HOSTILE, (Line(HOSTILE, 0.5, HOSTILE, 0.4, 0.6),), TICKS),
    Bars(HOSTILE, HOSTILE, ((0.5, 0.5, True),), TICKS, TICKS, (HOSTILE, HOSTILE)),
    Calibration(HOSTILE, HOSTILE, ((0.5, 0.5, 0.4, 0.6, 3),), TICKS),
]


@pytest.mark.parametrize("block", HOSTILE_BLOCKS, ids=lambda block: type(block).__name__)
def test_no_block_lets_html_through(block):
    html = render(HOSTILE, [Section("a", HOSTILE, (block,))], lead=[block], end=[block])
    assert "<script" not in html and html.count("&lt;script&gt;") > 4


def test_every_kind_of_block_is_tried():
    assert {type(block) for block in HOSTILE_BLOCKS} == set(get_args(Block))


def test_an_axis_has_round_numbers_and_holds_what_is_drawn():
    found = axis(0.613, 0.739, 4, percent=True)
    assert [words for _, words in found.ticks] == ["60%", "65%", "70%", "75%"]
    assert found.at(0.6) == 0.0 and found.at(0.75) == 100.0 and found.down(0.6) == 100.0
    assert axis(0.0, 18_000.0, 4).ticks[-1] == (20_000.0, "20,000")
    assert axis(0.0, 0.0).high > 0.0


# What a person who decides sees first.


def test_headline_says_how_good_against_what_and_how_sure(report):
    found = report.findings
    header = re.search(r"<header>(.*?)</header>", report.html, re.S).group(1)
    lead = re.search(r'<p class="lead">(.*?)</p>', header, re.S).group(1)
    assert lead.startswith("Right for ") and "a kNN with a searched k" in lead
    assert "probabilities" in lead and "label" in lead
    assert len(lead.split()) <= 45
    low, high = found.accuracy_interval
    assert f"{100 * found.scores.accuracy:.1f}% of the 60 rows" in header
    assert f"(95% interval {100 * low:.1f}% to {100 * high:.1f}%)" in header
    assert "always saying the commonest class" in header and "a kNN whose k was searched" in header
    assert f"contradict {found.audit.n_contradicted} labels" in header


def test_the_verdict_follows_the_folds_and_the_labels(report):
    found = report.findings
    few = replace(found.audit.wrong, n_contradicted=0)
    calm = replace(found, audit=replace(found.audit, wrong=few))
    assert verdict(calm).endswith("No sign of wrong labels.")
    scores = dict(found.comparison.scores)
    scores[KFREE] = replace(scores[KFREE], accuracy=0.0)
    poor = replace(found, comparison=replace(found.comparison, scores=scores))
    assert "on folds, no better than always saying the commonest class" in verdict(poor)
    # As often right as the kNN, but surer where it is right.
    even = replace(found.comparison, n_only_kfree=3, n_only_knn=3)
    for knn, expected in ((KFREE, False), (KNN, True)):
        losses = even.log_losses | {KNN: even.log_losses[knn] + (1.0 if expected else 0.0)}
        beside = verdict(replace(found, comparison=replace(even, log_losses=losses)))
        assert ("a kNN with a searched k, with better probabilities." in beside) == expected
    alone = replace(found, comparison=None)
    assert verdict(alone).startswith(f"Right for {100 * found.scores.accuracy:.1f}% of the rows.")


def test_few_rows_are_too_few_for_a_verdict():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 9.0, 8.0]})
    found = make_report(frame, list("xyxyz")).findings
    assert verdict(found).endswith("of the rows. But 5 rows are too few to judge anything by.")


def test_classes_that_are_mostly_missed_are_named(report):
    found = report.findings
    assert missed_notice(found) == ()
    counts = found.confusion.sum(axis=1)
    confusion = np.diag(counts)
    confusion[1] = [counts[1] - 3, 3, *[0] * (len(counts) - 2)]
    (notice,) = missed_notice(replace(found, confusion=confusion))
    name = str(found.classes[1])
    assert f"recognizes only 3 of the {counts[1]} rows labeled {name!r}. Where" in notice.words
    # Nothing is added where the whole model is worth nothing, or cannot be judged.
    assert missed_notice(replace(found, confusion=confusion, comparison=None)) == ()


def test_four_tiles_and_the_facts(report):
    found = report.findings
    tiles = re.search(r'<dl class="tiles">(.*?)</dl>', report.html, re.S).group(1)
    assert re.findall(r"<dt>(.*?)</dt>", tiles) == [
        "Accuracy",
        "Log loss",
        "Calibration error",
        "Contradicted labels",
    ]
    assert (
        f"{found.scores.log_loss:.3f}" in tiles
        and f"{found.comparison.scores[KNN].log_loss:.3f}" in tiles
    )
    facts = re.search(r'<dl class="short">(.*?)</dl>', report.html, re.S).group(1)
    assert "60 rows, 4 columns beside the labels, 4 classes" in facts
    assert f"{datetime.now(UTC):%Y}" in facts and "scikit-learn" in facts


def test_better_and_worse_than_knn_are_said(report):
    def words(ours, theirs):
        compared = replace(report.findings.comparison, n_only_kfree=ours, n_only_knn=theirs)
        return quality_words(replace(report.findings, comparison=compared))

    assert "and cannot be told from a kNN" in words(8, 5)
    assert "and better than a kNN" in words(30, 5)
    assert "and worse than a kNN" in words(5, 30)


def test_contradicted_labels_are_compared_with_what_overlap_explains():
    X, y = make_blobs(300, centers=[[0, 0], [1.5, 0]], random_state=0)
    found = make_report(X, y, model=KFreeClassifier(k_max=12)).findings
    assert "Overlap of the classes may explain that" in label_words(found)
    # What the audit itself says of that is said.
    assert tiles(found).tiles[-1].beside == "of 300; overlap of the classes may explain that"
    told = WrongLabels(n_rows=300, n_contradicted=15, n_estimated=12, interval=(7, 19))
    again = replace(found, audit=SimpleNamespace(n_contradicted=15, wrong=told))
    assert label_words(again) == f"The other rows contradict 15 labels. {told.in_words}"
    assert tiles(again).tiles[-1].beside == "of 300; about 12 wrong (7 to 19)"


def test_pictures_have_words_for_those_who_cannot_see_them(report):
    seen = [svg for svg in Tags(report.html).all("svg") if svg.get("aria-hidden") != "true"]
    assert [svg["role"] for svg in seen] == ["img", "img"]
    assert f"{report.findings.scores.calibration_error:.3f}" in seen[0]["aria-label"]
    best = report.findings.classifier.k_optimal_
    assert f"most probable number of neighbors is {best} " in seen[1]["aria-label"]


def test_the_headline_says_where_the_folds_contradict_it(report):
    found = report.findings
    usual = found.comparison
    assert "take what the folds say" not in quality_words(found)
    assert "worse than the plain shares" not in calibration_words(found)
    poor = replace(
        usual,
        scores=usual.scores | {KFREE: replace(usual.scores[KFREE], accuracy=0.02)},
        log_losses=usual.log_losses | {KFREE: usual.log_losses[KFREE] + 9.0},
    )
    contradicted = replace(found, comparison=poor)
    assert "take what the folds say" in quality_words(contradicted)
    assert "no better than always saying the commonest class" in quality_words(contradicted)
    assert "worse than the plain shares" in calibration_words(contradicted)
    # The tiles say what the headline says.
    assert tiles(contradicted).tiles[0].value == "2.0%"
    assert verdict(contradicted).startswith("Right for 2.0% of the rows on folds")


def test_the_folds_are_believed_where_leaving_a_row_out_is_far_worse(report):
    found = report.findings
    n_rows, n_classes = found.probabilities.shape
    assert not by_folds(found)
    wrong = np.full((n_rows, n_classes), 1e-9)
    wrong[np.arange(n_rows), (np.searchsorted(found.classes, found.labels) + 1) % n_classes] = 1.0
    odd = replace(
        found,
        held_out=replace(found.held_out, probabilities=wrong),
        scores=replace(found.scores, log_loss=20.7, calibration_error=0.9),
    )
    assert "take what the folds say" in quality_words(odd)
    assert "on folds" in verdict(odd)
    on_folds = found.comparison.scores[KFREE]
    assert tiles(odd).tiles[1].value == number(on_folds.log_loss)
    assert tiles(odd).tiles[2].value == f"{on_folds.calibration_error:.3f}"
    assert "But the folds contradict leave-one-out" in calibration_words(odd)


def test_a_column_that_gives_the_answer_away_is_named():
    rng = np.random.default_rng(0)
    labels = np.array(["paid", "late"] * 60)
    frame = pd.DataFrame(
        {"noise": rng.normal(size=120), "more": rng.normal(size=120)}
        | {"reminder": np.where(labels == "late", 1.0, 0.0) + rng.normal(scale=0.01, size=120)}
    )
    found = make_report(frame, labels, title="Leak").findings
    (notice,) = one_column_notice(found)
    assert "rests on the column 'reminder'" in notice.words
    # Columns that are worth nothing are counted, not drawn.
    words, picture, *_ = which_columns(found)
    assert [line.name for line in picture.lines] == ["reminder"]
    assert "2 columns are worth less than 1% of the first." in words.words
    # Every row is clear: no cards, and no picture of one point.
    (sentence,) = uncertain(found)
    assert sentence.words.startswith("No row is uncertain: the least sure is ")
    assert [block.kind for block in calibration(found)] == ["text", "details"]


def test_a_column_that_helps_most_gives_nothing_away(report):
    assert one_column_notice(report.findings) == ()


def test_small_numbers_are_not_zeros():
    found = [number(v) for v in (0.0, 0.25, 0.0014, 3e-9)]
    assert found == ["0.000", "0.250", "0.0014", "< 0.0001"]


def test_cards_are_narrow_only_if_their_tables_fit():
    def cards(*cells):
        table = Table("t", ("", "this row", "7", "8", "9"), (cells,))
        return Cards((Card("a", "b", table),))

    assert cards("x_ege", "7", "7", "7", "7").narrow
    assert not cards("g7657", "0.22856", "-1.11483", "-0.35586", "-0.11111").narrow


@pytest.mark.parametrize("n_classes", [3, 30])
def test_long_names_do_not_push_the_matrix_off_the_page(report, n_classes):
    classes = np.array([f"class number {i:02d} with a long name \x1b" for i in range(n_classes)])
    found = replace(
        report.findings,
        classifier=SimpleNamespace(classes_=classes),
        confusion=np.diag(np.full(n_classes, 2)),
        labels=np.repeat(classes, 2),
    )
    _, *blocks = confusions(found)
    # Beside something else it would have half of the width.
    inner = [block for outer in blocks for block in getattr(outer, "blocks", (outer,))]
    (matrix,) = [block for block in inner if getattr(block, "caption", "").startswith("Labels (")]
    assert isinstance(blocks[0], Table) == (n_classes == 3)
    assert sum(map(len, matrix.header[1 : n_classes + 1])) <= 150
    assert "\x1b" not in "".join(matrix.header)


def test_short_names_have_the_matrix_beside_the_confusions(report):
    classes = np.array(["setosa", "versicolor", "virginica"])
    found = replace(
        report.findings,
        classifier=SimpleNamespace(classes_=classes),
        confusion=np.diag([2, 2, 2]),
        labels=np.repeat(classes, 2),
    )
    assert isinstance(confusions(found)[1], Beside)


def test_many_classes_have_no_page_of_zeros():
    X, y = make_blobs(240, centers=12, cluster_std=2.0, random_state=0)
    html = make_report(X, y).html
    section = html.split('id="confusion"')[1].split("</section>")[0]
    assert " taken for " in section and section.index("taken for") < section.index("<table")
    assert re.search(r"<details><summary>The 12 x 12 matrix</summary>", section)
    assert ">0</td>" not in section
    X, y = make_blobs(180, centers=45, cluster_std=0.5, random_state=0)
    assert "45 x 45" not in make_report(X, y, model=KFreeClassifier(k_max=3)).html


def test_a_wrong_label_is_shown_with_its_neighbors(report, table):
    frame, _ = table
    audit = report.findings.audit
    place = list(audit.rows).index(0)
    assert place < 3 and audit.suggested[place] == HOSTILE
    section = report.html.split('id="labels"')[1].split("</section>")[0]
    card = next(part for part in section.split("<article>") if "Row 0 (A-000)" in part)
    neighbor = audit.neighbors_against[place][0]
    # Its own cells beside those of the rows that speak against it.
    assert f">{neighbor} (A-{neighbor:03})</th>" in card
    line = card.split("weight &amp; co</th>")[1].split("</tr>")[0]
    cells = [float(value) for value in re.findall(r"<td[^>]*>([^<]+)</td>", line)]
    expected = frame["weight & co"].iloc[[0, *audit.neighbors_against[place][:3]]]
    np.testing.assert_allclose(cells, expected, rtol=1e-5)
    row = next(part for part in section.split("<tr>") if ">0 (A-000)</th>" in part)
    assert f"{neighbor} (A-{neighbor:03}) (" in row


def test_cells_are_shown_as_they_are():
    assert cell(None) == cell(np.nan) == cell(pd.NaT) == cell(pd.NA) == "(missing)"
    assert cell("") == cell("  ") == cell("NA") == cell("?") == "(missing)"
    assert signed(-1e-5) == "+0.000" and signed(-0.0126) == "-0.013"
    assert cell(3) == "3" and cell(2.5) == "2.5" and cell("a\n b") == "a b"
    assert cell(pd.Timestamp("2020-03-01")) == "2020-03-01"
    assert len(cell("x" * 500)) == 60


def test_what_was_done_to_columns_is_said(report):
    assert "Left out: &#39;Kennung&#39;" in report.html
    assert "filled in with the median" in report.html
    kinds = {column.name: column.kind for column in report.findings.columns}
    assert kinds["colour"] == "category" and kinds["Länge <cm>"] == "number"
    assert kinds["Kennung"].startswith("left out")


def test_a_card_without_neighbors_says_so(report):
    found = report.findings
    alone = replace(found.audit, neighbors_against=np.full_like(found.audit.neighbors_against, -1))
    cards = suspicious(replace(found, audit=alone))[1].cards
    suggested = found.audit.suggested[0]
    assert f"None of the rows nearest to it is labeled {suggested}." in cards[0].words
    assert "Beside it the nearest rows" not in cards[0].words
    assert f"Beside it the nearest rows labeled {suggested}." in suspicious(found)[1].cards[0].words


@pytest.mark.parametrize(("first", "beside"), [(0, "; in parentheses is 'nr'"), (1, "")])
def test_identifiers_stand_beside_the_numbers_of_rows_unless_they_are_the_same(first, beside):
    X, y = make_blobs(40, centers=[[0, 0], [1.5, 0]], random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(nr=np.arange(first, first + 40))
    found = make_report(frame, y, count_from=1).findings
    assert str(found.row_names[2]) == ("3" if first else "3 (2)")
    words = suspicious(found)[0].words
    assert words.endswith(f"Rows are counted from 1{beside}.")


def test_only_identifiers_name_rows(table):
    """What a column is counts, not the words that say why it was left out."""
    frame, labels = table
    told = frame.assign(role="identifier")[["role", *frame.columns]]
    assert make_report(told, labels).findings.row_names[3] == "3 (A-003)"
    bare = make_report(told.drop(columns="Kennung"), labels).findings
    assert bare.row_names[3] == 3


def test_summary_is_for_json(report, table):
    summary = json.loads(json.dumps(report.findings.summary()))
    assert summary["n_rows"] == 60 and summary["classes"]["klein"] == 20
    assert summary["leave_one_out"]["accuracy"] == report.findings.scores.accuracy


def test_nothing_to_suspect():
    X, y = make_blobs(40, centers=[[0, 0], [20, 20]], random_state=0)
    html = make_report(X, y).html
    assert "No label is contradicted" in html
    assert "No row is taken for another class" in html


# How it is called.


def test_a_fitted_model_is_used_as_it_is():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), KFreeClassifier(k_max=5)).fit(X, y)
    found = make_report(X, y, model=model, row_names=[f"flower {i}" for i in range(150)])
    assert found.findings.classifier is model[-1]
    assert "flower " in found.html and "counted from 0" not in found.html


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"y": [0, 1] * 75}, ValueError, "fitted on other rows than the 150"),
        ({"model": KNeighborsClassifier()}, TypeError, "got KNeighborsClassifier"),
        ({"model": KFreeClassifier(metric="precomputed")}, ValueError, "needs the features"),
        ({"row_names": ["a"]}, ValueError, "row_names has 1 names, but X has 150 rows"),
    ],
)
def test_wrong_calls_are_refused(settings, error, message):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), KFreeClassifier(k_max=3)).fit(X, y)
    with pytest.raises(error, match=message):
        make_report(**({"X": X, "y": y, "model": model} | settings))


def test_output_is_whole_or_the_old_one(tmp_path):
    X, y = make_blobs(30, centers=2, random_state=0)
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ValueError):
        make_report(X, np.zeros(30), output=path)
    assert path.read_text() == "old"
    made = make_report(X, y, output=path)
    assert path.read_text(encoding="utf-8") == made.html
    assert list(tmp_path.iterdir()) == [path]


class TestCommand:
    @pytest.fixture
    def kfree(self, capsys):
        from kfree import cli

        def run(*words):
            with pytest.raises(SystemExit) as end:
                cli.make_app()(list(map(str, words)))
            said = capsys.readouterr()
            return end.value.code, said.out, said.err

        return run

    @pytest.fixture
    def data(self, tmp_path, table):
        frame, labels = table
        path = tmp_path / "data.csv"
        whole = frame.assign(Klasse=labels).drop(columns="Kennung")
        whole.iloc[:40:2].to_csv(path, sep=";", decimal=",", index=False)
        return path

    def test_writes_a_page(self, kfree, data, tmp_path):
        page = tmp_path / "page.html"
        code, out, _ = kfree("report", data, "--target", "Klasse", "--output", page)
        assert code == 0
        assert f"The report is in {page}." in out and "20 rows" in out
        html = page.read_text(encoding="utf-8")
        assert html.startswith("<!doctype html>") and html.endswith("</html>\n")
        assert hashlib.sha256(data.read_bytes()).hexdigest() in html
        assert "kfree report" in html and "--target Klasse" in html
        assert "Rows are counted from 1." in html

    def test_json(self, kfree, data, tmp_path):
        page = tmp_path / "page.html"
        code, out, _ = kfree(
            "report", data, "-t", "Klasse", "-o", page, "--json", "--drop", "colour"
        )
        assert code == 0
        told = json.loads(out)
        assert told["report"] == str(page) and told["verdict"].startswith("Right for ")
        assert "--drop colour" in page.read_text(encoding="utf-8")

    def test_json_and_the_page_do_not_share_standard_output(self, kfree, data):
        code, out, err = kfree("report", data, "-t", "Klasse", "-o", "-", "--json")
        assert code == 2 and out == ""
        assert "both write to standard output" in " ".join(err.split())

    def test_standard_output(self, kfree, data):
        code, out, err = kfree("report", data, "-t", "Klasse", "-o", "-")
        assert code == 0 and out.startswith("<!doctype html>") and out.endswith("</html>\n")
        assert "20 rows" in err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("-t", "Klase", "-o", "page.html"), "There is no column 'Klase'"),
            (("-t", "Klasse", "-o", "no/such/page.html"), "there is no such file or folder"),
            (("-t", "Länge <cm>", "-o", "page.html"), "continuous numbers"),
        ],
    )
    def test_one_sentence_and_nothing_written(
        self, kfree, data, tmp_path, monkeypatch, words, message
    ):
        monkeypatch.chdir(tmp_path)
        code, out, err = kfree("report", data, *words)
        assert code == 1 and out == ""
        assert message in err and len(err.splitlines()) == 1
        assert list(tmp_path.iterdir()) == [data]


def test_names_break_where_their_parts_meet():
    block = Table("t", ("label", "non-float_glass"), (("a_b", "-1.5"), ("A-01", "2-3")))
    html = render("t", [Section("a", "t", (block,))])
    assert "non-<wbr>float_<wbr>glass</th>" in html and "a_<wbr>b</th>" in html
    assert all(f">{number}<" in html for number in ("-1.5", "A-01", "2-3"))


# In a browser.


@pytest.fixture(scope="module")
def browser():
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed: the report was not looked at in a browser")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium is installed: the report was not looked at in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, page_file):
    """A function that opens the report, and what went wrong meanwhile."""
    contexts, wrong = [], []

    def look(width=DESK, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or wrong.append(request.url),
        )
        page.goto(page_file.as_uri())
        return page

    yield look
    for context in contexts:
        context.close()
    assert wrong == []


SUSPECTS = "#labels details table"


def column(page, number):
    return page.eval_on_selector_all(
        f"{SUSPECTS} tbody tr > :nth-child({number})", "cells => cells.map(c => c.textContent)"
    )


def test_tables_sort_by_click_and_by_key(opened):
    page = opened()
    page.locator("#labels details").evaluate("d => d.open = true")
    before = column(page, 3)
    assert len(before) >= 3
    head = page.locator(f"{SUSPECTS} thead th").nth(2)
    assert head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    rising = column(page, 3)
    assert rising == sorted(before, key=float)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, 3) == sorted(before, key=float, reverse=True)
    # Text sorts as text, and only one column at a time is the sorted one.
    other = page.locator(f"{SUSPECTS} thead th").nth(1)
    other.locator("button").focus()
    page.keyboard.press("Space")
    assert other.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") == "none"
    labels = column(page, 2)
    assert labels != column(page, 4) and len(set(labels)) > 1
    groups = [label for i, label in enumerate(labels) if i == 0 or labels[i - 1] != label]
    assert len(groups) == len(set(groups))


@pytest.mark.parametrize("width", [PHONE, DESK, WIDE])
def test_pictures_are_seen(opened, width):
    page = opened(width)
    boxes = page.eval_on_selector_all(
        "figure svg",
        "all => all.map(s => [s.getBoundingClientRect().width, s.getBoundingClientRect().height])",
    )
    assert len(boxes) > 20
    assert min(w for w, _ in boxes) > 150 and min(h for _, h in boxes) > 10
    # Letters keep their size, and do not run into each other along an axis.
    sizes = page.eval_on_selector_all(
        ".ticks span", "all => all.map(t => parseFloat(getComputedStyle(t).fontSize))"
    )
    assert min(sizes) >= 12
    overlaps = page.eval_on_selector_all(
        ".ticks:not(.up)",
        """all => all.map(s => {
          const boxes = [...s.querySelectorAll("span")].map(t => t.getBoundingClientRect());
          return boxes.some((b, i) => i > 0 && b.left < boxes[i - 1].right);
        })""",
    )
    assert len(overlaps) > 3 and not any(overlaps)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_page_is_as_wide_as_the_screen(opened, width):
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_prints_with_all_that_is_folded(opened):
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("details table").first.bounding_box()["height"] > 50
    assert page.locator("nav").bounding_box() is None
    # Paper cannot be scrolled.
    for wide in ("pre", "pre code"):
        size = "e => [e.scrollWidth, e.clientWidth]"
        inside, seen = page.locator(wide).first.evaluate(size)
        assert inside <= seen
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_many_classes_are_printed_whole(browser):
    names = tuple(f"class {i}" for i in range(26))
    counts = tuple("100" for _ in names)
    block = Table(
        "t",
        ("label", *names),
        tuple((name, *counts) for name in names),
        shades=tuple((0.1,) * 26 for _ in names),
    )
    page = browser.new_page(viewport={"width": 680, "height": 900})  # A4 without its margins
    page.set_content(render("t", [Section("a", "t", (block,))]))
    page.emulate_media(media="print")
    assert page.locator("table").bounding_box()["width"] <= 680
    # And on a screen of 1280 letters of the alphabet fit beside the contents.
    short = replace(block, header=("label", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": DESK, "height": 900})
    page.set_content(render("t", [Section("a", "t", (short,))]))
    inside, seen = page.locator(".wide").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert inside <= seen
    page.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(opened, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = opened(width, scheme)
    page.eval_on_selector_all("details", "all => all.forEach(d => d.open = true)")
    found = axe.Axe().run(page).response
    # Incomplete is what axe could not decide, such as the contrast of words on an unknown ground.
    for kind in ("violations", "incomplete"):
        assert [(v["id"], v["nodes"][0]["html"]) for v in found[kind]] == []


def test_axe_sees_what_is_wrong(browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = browser.new_page()
    page.set_content('<html lang="en"><title>t</title><main><h1>h</h1><img src="x"></main></html>')
    assert "image-alt" in [v["id"] for v in axe.Axe().run(page).response["violations"]]
    page.close()
