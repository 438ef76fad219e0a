"""Making environments, with stand-in wheels and this interpreter; no network."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest

from core.errors import BuildFailed, NotFound, Stopped, UserError
from core.versions import parse_spec
from tests import standin
from workers.environments import Environments
from workers.locking import Lock, try_lock

NEW = "2.13.0"
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


class Place:
    """A folder for environments, a stock of wheels, and what was said."""

    def __init__(self, tmp: Path) -> None:
        self.folder, self.wheels = tmp / "environments", tmp / "wheels"
        self.environ = standin.stock(self.wheels, NEW, "2.12.0")
        self.said: list[str] = []

    def environments(self, **options: object) -> Environments:
        options = {"torch_backend": "off", "pythons": (sys.executable,), "environ": self.environ} | options
        return Environments(self.folder, say=self.said.append, **options)  # type: ignore[arg-type]

    def left_over(self) -> list[str]:
        return [entry.name for entry in (self.folder / ".aside").iterdir()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_an_environment_is_made_probed_and_locked(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    assert made.path == place.folder / made.name
    assert made.python == made.path / "bin" / "python" and made.python.exists()
    assert made.python_version.startswith(OWN)
    assert (made.build.version, made.build.label, made.build.channel, made.build.flavour) == (
        NEW,
        NEW,
        "release",
        "cpu",
    )
    assert made.build.git_revision == standin.GIT
    assert {"torch==2.13.0", "numpy==2.1.0"} < set(made.lock.splitlines())
    assert made.lock.startswith(f"# python {made.python_version}\n# platform ")
    facts = {
        "OpenMP": "201511 (a.k.a. OpenMP 4.5)",
        "BLAS": "mkl",
        "oneDNN": "3.7.1",
        "LLVM": "unknown",
        "CUDA": "none",
    }
    assert facts.items() <= made.probe.items()
    assert made.size_bytes > 1000 and not made.reused
    assert place.left_over() == []


def test_a_second_request_finds_it_without_asking_anybody(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    shutil.rmtree(place.wheels)
    place.said.clear()
    again = place.environments().prepare(parse_spec(NEW))
    assert again.reused and again.name == made.name and again.lock == made.lock and again.build == made.build
    assert place.said == []


def test_specs_that_lock_the_same_packages_share_one(place: Place) -> None:
    one = place.environments().prepare(parse_spec(NEW))
    same = place.environments().prepare(parse_spec(NEW), python=OWN)
    other = place.environments().prepare(parse_spec("2.12.0"))
    assert same.name == one.name and same.reused
    assert other.name != one.name


def test_extras_are_part_of_the_lock(place: Place) -> None:
    standin.wheel(place.wheels, "monkeytype", "23.3.0", {"monkeytype/__init__.py": ""})
    plain = place.environments().prepare(parse_spec(NEW))
    more = place.environments().prepare(parse_spec(NEW), extras=("monkeytype",))
    assert "monkeytype==23.3.0" in more.lock and "monkeytype" not in plain.lock
    assert more.name != plain.name


def test_old_torch_gets_the_numpy_and_setuptools_that_it_needs(place: Place) -> None:
    standin.torch_wheel(place.wheels, "2.0.1")
    lock = place.environments().prepare(parse_spec("2.0.1")).lock
    assert "numpy==1.26.4" in lock and "setuptools==69.5.1" in lock


def test_a_cpu_wheel_in_a_folder_satisfies_the_plain_version(place: Place) -> None:
    standin.torch_wheel(place.wheels, "2.11.0+cpu")
    made = place.environments().prepare(parse_spec("2.11.0"))
    assert made.build.label == "2.11.0+cpu"
    assert "torch==2.11.0+cpu" in made.lock


# -- failures ----------------------------------------------------------------------------------------------------------


def refused(place: Place, text: str, **options: object) -> BuildFailed:
    with pytest.raises(BuildFailed) as found:
        place.environments(**options).prepare(parse_spec(text))
    sentence = str(found.value)
    assert "\n" not in sentence and sentence.endswith(".") and len(sentence) < 400
    assert place.left_over() == []
    assert [p.name for p in place.folder.iterdir() if not p.name.startswith(".")] == []
    return found.value


def test_a_version_that_does_not_exist(place: Place) -> None:
    error = refused(place, "99.0.0")
    assert error.step == "resolving packages"
    assert "99.0.0 does not exist" in str(error) and "the find-links folder" in str(error)
    assert str(place.wheels) not in str(error)
    assert "torch==99.0.0" in error.log


def test_a_torch_without_a_wheel_for_this_python(place: Place) -> None:
    standin.torch_wheel(place.wheels, "2.10.0", tag="cp38-cp38-linux_x86_64")
    error = refused(place, "2.10.0")
    assert f"has no wheel for Python {OWN}" in str(error)


def test_constraints_of_pip_are_kept(place: Place, tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").write_text("torch<2.13\n")
    place.environ["PIP_CONSTRAINT"] = str(tmp_path / "constraints.txt")
    assert "ruled out by the constraints" in str(refused(place, NEW))


def test_a_torch_that_cannot_be_imported(place: Place) -> None:
    standin.torch_wheel(
        place.wheels, "2.10.0", body="raise ImportError('libcudart.so.13: cannot open shared object file')"
    )
    error = refused(place, "2.10.0")
    assert error.step == "importing torch"
    assert "libcudart.so.13" in str(error)
    assert "ImportError: libcudart.so.13" in error.log and "Traceback" not in error.log  # no frames on any screen


def test_a_torch_that_crashes_when_imported(place: Place) -> None:
    standin.torch_wheel(place.wheels, "2.10.0", body="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert "ended by signal 11" in str(refused(place, "2.10.0"))


def test_a_torch_that_is_another_one_than_it_says(place: Place) -> None:
    standin.torch_wheel(place.wheels, "2.10.0", says="2.9.1")
    assert "says that it is 2.9.1" in str(refused(place, "2.10.0"))


def test_output_on_import_does_not_spoil_the_probe(place: Place) -> None:
    standin.torch_wheel(place.wheels, "2.10.0", body="print('No CUDA runtime is found')")
    assert place.environments().prepare(parse_spec("2.10.0")).build.version == "2.10.0"


def test_a_full_disk_is_said_before_anything_is_installed(place: Place) -> None:
    error = refused(place, NEW, disk_free=lambda folder: 2**30)
    assert "needs about 3 GiB and 1.0 GiB are free" in str(error)
    assert not any("Installing" in sentence for sentence in place.said)


def test_a_damaged_wheel(place: Place) -> None:
    file = standin.torch_wheel(place.wheels, "2.10.0")
    file.write_bytes(file.read_bytes()[:200])
    assert refused(place, "2.10.0").step in ("resolving packages", "installing packages")


@pytest.mark.parametrize("text", ["nightly", "latest", "wheel:/x.whl"])
def test_what_cannot_be_installed_yet_is_the_persons_error(place: Place, text: str) -> None:
    with pytest.raises(UserError, match="yet"):
        place.environments().prepare(parse_spec(text))


# -- Pythons -----------------------------------------------------------------------------------------------------------


def test_a_python_that_the_build_does_not_support(place: Place) -> None:
    with pytest.raises(UserError, match=r"PyTorch 1\.10\.2 has no wheels for Python 3\.12; it supports 3\.9"):
        place.environments().prepare(parse_spec("1.10.2"), python="3.12")


def test_a_python_that_does_not_run(place: Place, tmp_path: Path) -> None:
    shim = tmp_path / "python3.9"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    with pytest.raises(UserError, match="is no CPython"):
        place.environments().prepare(parse_spec(NEW), python=str(shim))


def test_no_python_that_fits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.environments.found_pythons", lambda given, environ: ())
    monkeypatch.setattr("workers.building.Installer.fetch_python", lambda self, minors, stop: None)
    error = refused(place, "1.12.1")
    assert error.step == "finding a Python"
    assert "needs Python 3.9 or 3.10, which is neither on this machine nor could be fetched" in str(error)


def test_a_ready_environment_whose_python_is_gone_is_made_anew(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    made.python.unlink()
    again = place.environments().prepare(parse_spec(NEW))
    assert again.name == made.name and not again.reused and again.python.exists()


def test_a_ready_environment_with_a_missing_library_is_made_anew(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    next(made.path.rglob("libtorch.so")).unlink()
    again = place.environments().prepare(parse_spec(NEW))
    assert not again.reused and list(again.path.rglob("libtorch.so"))


def test_an_unreadable_marker_is_no_ready_environment(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    (made.path / "flashpoint.json").write_text(json.dumps({"form": 0}))
    assert not place.environments().prepare(parse_spec(NEW)).reused


# -- an interpreter of somebody else -----------------------------------------------------------------------------------


def test_an_existing_interpreter_is_asked_and_not_copied(place: Place, tmp_path: Path) -> None:
    own = place.environments().prepare(parse_spec(NEW))
    before = sorted(place.folder.iterdir())
    found = place.environments().prepare(parse_spec(f"existing:{own.python}"))
    assert (found.python, found.path, found.size_bytes) == (own.python, own.path, 0)
    assert found.build.channel == "local"
    assert found.build.label.startswith("2.13.0@") and found.build.version == "2.13.0"
    assert "torch==2.13.0" in found.lock
    place.environments().remove(found.name)
    assert own.python.exists() and sorted(place.folder.iterdir()) == before


def test_two_interpreters_with_one_version_keep_two_labels(place: Place) -> None:
    one = place.environments().prepare(parse_spec(NEW))
    link = place.folder / "other"
    link.symlink_to(one.path)
    names = {place.environments().probe_python(str(p)).build.label for p in (one.python, link / "bin" / "python")}
    assert len(names) == 2


def test_an_existing_interpreter_without_torch(place: Place) -> None:
    empty = place.folder.parent / "empty"
    made = place.environments().prepare(parse_spec(NEW))
    shutil.copytree(made.path, empty, symlinks=True)
    shutil.rmtree(next(empty.rglob("torch")))
    with pytest.raises(BuildFailed, match="There is no torch in"):
        place.environments().prepare(parse_spec(f"existing:{empty / 'bin' / 'python'}"))
    with pytest.raises(BuildFailed, match="There is no interpreter at"):
        place.environments().prepare(parse_spec("existing:/nowhere/python"))
    with pytest.raises(BuildFailed, match=r"cannot be started|failed"):
        text = place.folder / "text"
        text.write_text("no program")
        text.chmod(0o755)
        place.environments().prepare(parse_spec(f"existing:{text}"))


# -- removing ----------------------------------------------------------------------------------------------------------


def test_removing_one_leaves_nothing_and_it_can_be_made_again(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    place.environments().remove(made.name)
    assert not made.path.exists() and place.left_over() == []
    assert not place.environments().prepare(parse_spec(NEW)).reused


@pytest.mark.parametrize("name", ["", ".", "..", "../environments", ".locks", "nope", "/etc"])
def test_only_environments_of_the_folder_can_be_removed(place: Place, name: str) -> None:
    place.environments().prepare(parse_spec(NEW))
    with pytest.raises(NotFound):
        place.environments().remove(name)
    assert (place.folder / ".locks").is_dir()


def test_one_that_is_being_made_cannot_be_removed(place: Place) -> None:
    made = place.environments().prepare(parse_spec(NEW))
    with try_lock(place.folder / ".locks" / made.name) as fd:
        assert fd is not None
        with pytest.raises(UserError, match="being made just now"):
            place.environments().remove(made.name)
    assert made.path.exists()


# -- several builders, stopping, dying ---------------------------------------------------------------------------------


def _build(folder: Path, environ: dict[str, str], out: SimpleQueue[tuple[str, bool]]) -> None:
    made = Environments(
        folder, torch_backend="off", pythons=(sys.executable,), environ=environ, say=lambda sentence: None
    ).prepare(parse_spec(NEW))
    out.put((made.name, made.reused))


def test_two_builders_of_one_environment_make_it_once(place: Place) -> None:
    spawn = multiprocessing.get_context("spawn")
    out = spawn.SimpleQueue()
    builders = [spawn.Process(target=_build, args=(place.folder, place.environ, out)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(60)
    results = [out.get() for _ in builders]
    assert len({name for name, _ in results}) == 1
    assert sorted(reused for _, reused in results) == [False, True, True]
    assert place.left_over() == []


def test_stopping_ends_the_installer_and_leaves_nothing(place: Place) -> None:
    # The import hangs for ever, so the stop comes while a child runs.
    hang = "import os, time\nopen(os.path.dirname(__file__) + '/pid', 'w').write(str(os.getpid()))\n"
    standin.torch_wheel(place.wheels, "2.10.0", body=hang + "while True: time.sleep(1)")
    pids: list[int] = []

    def importing() -> bool:
        for file in (place.folder / ".aside").rglob("torch/pid"):
            if text := file.read_text():
                pids.append(int(text))
        return bool(pids)

    with pytest.raises(Stopped):
        place.environments().prepare(parse_spec("2.10.0"), stop=importing)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert place.left_over() == []


def test_stopping_while_another_builder_is_at_work(place: Place, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    told: list[str] = []
    with try_lock(tmp_path / "locks" / "x") as fd:
        assert fd is not None
        with pytest.raises(Stopped), Lock(tmp_path / "locks" / "x", lambda: bool(told), lambda: told.append("waiting")):
            raise AssertionError("the lock was given twice")
    assert told == ["waiting"]


def _die(folder: Path, environ: dict[str, str]) -> None:
    def say(sentence: str) -> None:
        if sentence.startswith("Importing"):
            os.kill(os.getpid(), signal.SIGKILL)

    Environments(folder, torch_backend="off", pythons=(sys.executable,), environ=environ, say=say).prepare(
        parse_spec(NEW)
    )


def test_what_a_killed_builder_left_is_never_used_and_cleaned(place: Place) -> None:
    builder = multiprocessing.get_context("spawn").Process(target=_die, args=(place.folder, place.environ))
    builder.start()
    builder.join(60)
    assert builder.exitcode == -signal.SIGKILL
    (half,) = place.left_over()
    other = place.environments().prepare(parse_spec("2.12.0"))  # another environment's builder cleans up too
    assert place.left_over() == [] and not (place.folder / half.partition(".")[0]).exists()
    made = place.environments().prepare(parse_spec(NEW))
    assert not made.reused and made.name != other.name


# -- PyTorch's own index -----------------------------------------------------------------------------------------------


@pytest.fixture
def indexes(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stands between Flashpoint and uv: with a torch backend it fails as uv does when nobody answers."""
    from workers import backends, uvrun

    place.environ.pop("PIP_NO_INDEX")
    place.environ["UV_OFFLINE"] = "1"
    fake = tmp_path / "uv"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *--torch-backend*) echo "$*" >> {tmp_path}/asked; '
        f'echo "error: Failed to fetch: dns error"; exit 2;; esac\nexec {uvrun.uv.find_uv_bin()} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr("workers.uvrun.uv.find_uv_bin", lambda: str(fake))
    monkeypatch.setattr("workers.environments.has_gpu", lambda: False)
    backends.Unreachable.forget()
    yield
    backends.Unreachable.forget()


def asked(tmp_path: Path) -> int:
    file = tmp_path / "asked"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_auto_falls_back_says_so_and_remembers(place: Place, indexes: None, tmp_path: Path) -> None:
    made = place.environments(torch_backend="auto").prepare(parse_spec(NEW))
    assert made.build.version == NEW and asked(tmp_path) == 1
    assert any("cpu wheels cannot be reached" in s and "using the configured package sources" in s for s in place.said)
    place.environments(torch_backend="auto").prepare(parse_spec("2.12.0"))
    assert asked(tmp_path) == 1


def test_auto_does_not_ask_when_a_cpu_wheel_lies_at_hand(place: Place, indexes: None, tmp_path: Path) -> None:
    tag = f"cp{OWN.replace('.', '')}-none-any"
    standin.torch_wheel(place.wheels, "2.11.0+cpu", tag=tag)
    assert place.environments(torch_backend="auto").prepare(parse_spec("2.11.0")).build.flavour == "cpu"
    assert asked(tmp_path) == 0


def test_auto_with_a_gpu_and_off_never_ask(
    place: Place, indexes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.environments(torch_backend="off").prepare(parse_spec(NEW))
    monkeypatch.setattr("workers.environments.has_gpu", lambda: True)
    place.environments(torch_backend="auto").prepare(parse_spec("2.12.0"))
    assert asked(tmp_path) == 0


def test_a_forced_backend_has_no_fall_back(place: Place, indexes: None) -> None:
    error = refused(place, NEW, torch_backend="cpu")
    assert "FLASHPOINT_TORCH_BACKEND demands, could not be reached" in str(error)


def test_an_index_that_never_answers_costs_its_deadline_only(
    place: Place, indexes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = tmp_path / "uv"
    hanging.write_text(hanging.read_text().replace('echo "error: Failed to fetch: dns error"; exit 2', "sleep 600"))
    monkeypatch.setattr("workers.building.ASK_BACKEND_S", 0.2)
    assert place.environments(torch_backend="auto").prepare(parse_spec(NEW)).build.version == NEW
    assert any("cannot be reached" in sentence for sentence in place.said)


def test_an_interpreter_whose_path_no_disk_takes_is_one_sentence(place: Place) -> None:
    with pytest.raises(UserError, match="File name too long") as caught:
        place.environments().probe_python("/" + "x" * 256)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200
