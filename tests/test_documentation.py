"""Links of the pages lead somewhere, and the Python on them runs and prints what they say."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tomllib
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from kfree.evaluation import DataNotFound

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# `make docs` makes this folder, and says if a link into it leads nowhere.
MADE = "gallery/"
# How the first line of a block begins that is shown but not run, the reason after it.
NOT_RUN = "# not run by the tests: "
MOST_NOT_RUN = 3

FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """Python on a page, and what the block of text right after it says that is printed."""

    line: int
    code: str
    printed: str | None


def python_blocks(text: str) -> list[Block]:
    fences = list(FENCE.finditer(text))
    blocks = []
    for fence, after in zip_longest(fences, fences[1:]):
        if fence[1] != "python":
            continue
        follows = after and after[1] == "text" and not text[fence.end() : after.start()].strip()
        line = text.count("\n", 0, fence.start()) + 2
        blocks.append(Block(line, fence[2], after[2] if follows else None))
    return blocks


def run(blocks: list[Block], page: str) -> None:
    """All blocks one after the other in one namespace, as a reader would type them."""
    names = {"__name__": "page"}
    for block in blocks:
        if block.code.startswith(NOT_RUN):
            continue
        # Lines before the code, so that a traceback names the line of the page.
        program = compile("\n" * (block.line - 1) + block.code, page, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(program, names)
        if block.printed is not None:
            assert out.getvalue() == block.printed, f"{page}, line {block.line}"


def links(text: str) -> list[str]:
    return LINK.findall(FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Names of the headings, as Markdown makes them."""
    titles = re.findall(r"^#+ +(.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def leads_nowhere(link: str, page: Path) -> str | None:
    """What is wrong with a link of a page, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = link.partition("#")
    if path.startswith(MADE):
        return None
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: there is no such file"
    if not target.is_relative_to(ROOT):
        return f"{link}: outside the project"
    if anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
        return f"{link}: the page has no such heading"
    return None


@pytest.fixture
def quiet_matplotlib():
    """No windows, and no figures left behind."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links(page):
    found = links(page.read_text(encoding="utf-8"))
    assert [wrong for link in found if (wrong := leads_nowhere(link, page))] == []


@pytest.mark.parametrize(
    "page", [p for p in PAGES if python_blocks(p.read_text(encoding="utf-8"))], ids=page_id
)
def test_python_runs(page, quiet_matplotlib, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        run(python_blocks(page.read_text(encoding="utf-8")), page.name)
    except DataNotFound as notice:
        pytest.skip(str(notice))


def test_few_blocks_are_not_run():
    blocks = [block for page in PAGES for block in python_blocks(page.read_text(encoding="utf-8"))]
    assert len(blocks) > 20
    assert sum(block.code.startswith(NOT_RUN) for block in blocks) <= MOST_NOT_RUN


def console(text: str) -> list[tuple[list[str], str]]:
    """The commands `kfree` of a page, each with what the page says that it prints."""
    blocks = "\n".join(re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    found = []
    for part in re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        if command.startswith("kfree "):
            found.append((shlex.split(command)[1:], printed))
    return found


def wording(printed: str) -> list[str]:
    """What is said, without numbers and the lines of bars and rows, of which there may be more."""
    lines = [line for line in printed.splitlines() if not re.match(r"\s+(row )?[\d-]+[ :]", line)]
    plain = (re.sub(r"\d[\d.,-]*(e-\d+)?", "0", " ".join(line.split())) for line in lines)
    # What takes long is spoken of, and on a busy machine more does.
    return [line for line in plain if line and not line.endswith("...")]


def test_commands_print_what_the_page_says(tmp_path, monkeypatch):
    """The words of every sentence; numbers are of the day on which the page was written."""
    pytest.importorskip("typer")
    from sklearn.datasets import load_iris
    from typer.testing import CliRunner

    from kfree.cli import make_app

    monkeypatch.chdir(tmp_path)
    iris = load_iris(as_frame=True)
    table = iris.data.assign(species=iris.target_names[iris.target])
    table.to_csv("iris.csv", index=False)
    new = table.sample(5, random_state=0).drop(columns="species")
    new.to_csv("new.csv", index=False)
    new.drop(columns=["sepal width (cm)", "petal width (cm)"]).to_csv("other.csv", index=False)
    Path("report.xlsx").write_bytes(b"PK\x03\x04" + bytes(20))
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    tried = 0
    for words, expected in console(page):
        if "bäume.csv" in words:  # of the tests of tables
            continue
        result = CliRunner().invoke(make_app(), words)
        said = wording(result.output)
        wanted = wording(expected)
        # With dots the page shows a part.
        assert said == wanted or ("..." in expected and set(wanted) <= set(said)), " ".join(words)
        tried += 1
    assert tried >= 12


class TestTheChecks:
    """The checks above must be able to fail."""

    PAGE = (
        "# A title: two\n\n```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n"
    )

    def test_blocks_share_names_and_their_output_is_compared(self):
        run(python_blocks(self.PAGE), "page")
        with pytest.raises(AssertionError, match="line 8"):
            run(python_blocks(self.PAGE.replace("\n1\n", "\n2\n")), "page")

    def test_a_command_with_other_words_is_seen(self):
        page = "```console\n$ kfree fit a.csv\nThe model is in a.\n```\n"
        ((words, printed),) = console(page)
        assert words == ["fit", "a.csv"]
        assert wording(printed) == wording("The  model is in a.\n  row 3: b (0.1)")
        assert wording(printed) != wording("A model is in a.")

    def test_an_error_is_seen(self):
        with pytest.raises(NameError):
            run(python_blocks("```python\nnowhere\n```\n"), "page")

    def test_output_further_down_is_not_compared(self):
        text = self.PAGE.replace("```text", "Some words.\n\n```text")
        assert [block.printed for block in python_blocks(text)] == [None, None]

    @pytest.mark.parametrize("link", ["absent.md", "#absent", "../../../etc/passwd", "tests#a"])
    def test_a_dead_link_is_seen(self, link, tmp_path):
        page = tmp_path / "page.md"
        page.write_text(self.PAGE, encoding="utf-8")
        assert leads_nowhere(link, page)

    def test_a_live_link_is_not_blamed(self):
        page = ROOT / "README.md"
        assert not leads_nowhere("docs/model.md#leave-one-out", page)
        assert not leads_nowhere("https://example.org", page)

    def test_links_in_code_are_not_links(self):
        assert links("[a](b.md)\n```python\nx[0](c)\n```\n") == ["b.md"]


# Columns of the table in README, and what docs/quality.md calls them.
MEASURES = {
    "log loss": "Log loss",
    "mean rank": "Mean rank of the log loss",
    "accuracy": "Accuracy",
    "macro F-measure": "F-measure",
    "CPU seconds": "CPU seconds",
}


# Names in README, and what docs/quality.md calls them.
CALLED = {
    "`FieldClassifier`": "field",
    "`KFreeClassifier`": "kfree",
    "logistic regression": "logistic",
    "kNN, grid search": "grid search",
}


def called(name: str) -> str:
    return CALLED.get(name, name).lower().removeprefix("the ")


class TestPromises:
    """What README says of the quality is what docs/quality.md shows, which is measured."""

    @staticmethod
    def table(text: str, first_cell: str) -> dict[str, list[str]]:
        """The first table whose head has this first cell, as rows by their names."""
        lines = iter(text.splitlines())
        cells = next(row for row in map(cells_of, lines) if row and row[0] == first_cell)
        rows = {"": cells[1:]}
        for row in map(cells_of, lines):
            if not row:
                return rows
            if not row[0].startswith("---"):
                rows[row[0]] = row[1:]
        return rows

    @pytest.mark.parametrize(
        ("first_cell", "n_measures", "n_methods"),
        [("mean over 32 data sets", 2, 5), ("mean over the data sets", len(MEASURES), 9)],
    )
    def test_means_are_those_measured(self, first_cell, n_measures, n_methods):
        said = self.table(read("README.md"), first_cell)
        shown = self.table(read("docs/quality.md").split("## Means")[1], "")
        measures = said.pop("")
        assert set(measures) <= set(MEASURES)
        assert len(measures) == n_measures and len(said) >= n_methods
        for name, values in said.items():
            for measure, value in zip(measures, values, strict=True):
                measured = shown[MEASURES[measure]][shown[""].index(called(name))].strip("*")
                digits = len(value.partition(".")[2])
                assert value == f"{float(measured):.{digits}f}"

    def test_counts_are_those_measured(self):
        said = " ".join(read("README.md").split())
        shown = self.table(read("docs/quality.md").split("## Pairs")[1], "")
        # "`A` is better than B on 31 of the 32 data sets and than C on 28;"
        sentences = re.findall(r"(`\w+Classifier`) is better ([^;.]+)[;.]", said)
        found = [
            (classifier, other, number)
            for classifier, rest in sentences
            for other, number in re.findall(r"than ([A-Za-z ]+?) on (?:all )?(\d+)", rest)
        ]
        assert len(found) >= 4
        for classifier, other, number in found:
            assert number == shown[called(classifier)][shown[""].index(called(other))]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def test_the_first_block_comes_after_the_way_to_install_and_prints_little():
    text = read("README.md")
    block = python_blocks(text)[0]
    assert text.index("pip install .") < text.index(block.code)
    assert block.printed is not None and len(block.printed.splitlines()) <= 2


def test_citation_has_the_version_of_the_package():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    citation = read("CITATION.cff")
    assert f"\nversion: {project['version']}\n" in citation
    assert f"\nlicense: {project['license']}\n" in citation
