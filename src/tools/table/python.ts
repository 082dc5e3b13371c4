/** Python's installers, test runners and builders. */
import type { Entry, Tool, WorkerOption, WorkerVariable } from "../schema.js";

const NATIVE_BUILDS: readonly WorkerVariable[] = [
  { name: "MAX_JOBS", value: "{n}" },
  { name: "CMAKE_BUILD_PARALLEL_LEVEL", value: "{n}" },
];
const UV: readonly WorkerVariable[] = [
  { name: "UV_CONCURRENT_BUILDS", value: "{n}" },
  { name: "UV_CONCURRENT_INSTALLS", value: "{n}" },
];

const PIP: Entry = {
  kind: "install",
  bare: "light",
  light: "-V",
  valued:
    "-r --requirement -c --constraint -e --editable -t --target -i --index-url --extra-index-url -f --find-links --prefix --root --python-version --platform --log --proxy --retries --timeout --cache-dir --python -C --config-settings",
  subcommands: {
    "install wheel download lock": { kind: "install", variables: NATIVE_BUILDS },
    "list show freeze check config search cache index hash help debug inspect completion uninstall": "light",
  },
  other: "light",
  next: "install fewer packages at a time, prefer wheels (--only-binary=:all:), and use --no-cache-dir for huge ones",
};

const TOX_WORKERS: WorkerOption = {
  options: "-p --parallel",
  write: "-p {n}",
  optionalValue: true,
  all: "auto all",
};

const NEXT_TEST = "run one test file or directory at a time, without -n";

export const PYTHON: readonly Tool[] = [
  { ...PIP, names: "pip", modules: "pip" },
  {
    names: "uv",
    kind: "install",
    bare: "light",
    light: "-V --dry-run",
    valued:
      "--directory --project --config-file --cache-dir --color -p --python --index --default-index --extra --group",
    variables: UV,
    subcommands: {
      "sync add remove lock": "install",
      pip: {
        subcommands: { "install sync compile": "install" },
        other: "light",
        bare: "light",
        valued: "-r --requirement -c -e --python -p --target",
      },
      tool: {
        subcommands: { "install upgrade": "install", "run list uninstall dir update-shell": "light" },
        other: "light",
        bare: "light",
      },
      python: { subcommands: { "install upgrade": "install" }, other: "light", bare: "light" },
      build: "build",
      "run venv tree export init cache self version help publish format auth workspace": "light",
    },
    other: "light",
    next: "install fewer packages at a time, or only those with wheels (--no-build)",
  },
  {
    names: "poetry",
    kind: "install",
    bare: "light",
    light: "-V --dry-run",
    valued: "-C --directory -P --project",
    subcommands: {
      "install add update lock remove sync": "install",
      build: "build",
      self: { subcommands: { "add update install": "install" }, other: "light", bare: "light" },
      "run show env config check version new init about search source cache export shell publish list help": "light",
    },
    other: "light",
    variables: [{ name: "POETRY_INSTALLER_MAX_WORKERS", value: "{n}" }],
  },
  {
    names: "pdm rye pixi hatchling",
    kind: "install",
    bare: "light",
    light: "-V",
    valued: "-p --project",
    subcommands: {
      "install sync add update lock remove upgrade global self": "install",
      build: "build",
      test: "test",
      task: "light",
    },
    other: "light",
  },
  {
    names: "pipenv",
    kind: "install",
    bare: "light",
    subcommands: { "install sync update lock upgrade uninstall": "install" },
    other: "light",
  },
  {
    names: "hatch",
    kind: "script",
    bare: "light",
    valued: "-e --env -p --project",
    subcommands: {
      test: "test",
      build: "build",
      run: {
        bare: "light",
        subcommands: { "test tests pytest cov test-cov test:run": "test", python: "light" },
        other: "script",
        operandIsProgram: true,
      },
      "fmt env dep version config new status clean publish shell python project self": "light",
    },
    other: "light",
  },
  {
    names: "pipx",
    kind: "install",
    bare: "light",
    subcommands: { "install inject upgrade upgrade-all reinstall reinstall-all install-all": "install" },
    other: "light",
  },
  {
    names: "conda mamba micromamba",
    kind: "install",
    bare: "light",
    light: "-V --dry-run -d",
    valued: "-n --name -p --prefix -c --channel -f --file",
    subcommands: {
      "install create update upgrade remove uninstall": "install",
      env: { subcommands: { "create update": "install" }, other: "light", bare: "light" },
      build: "build",
      "list info search config activate deactivate init clean run shell": "light",
    },
    other: "light",
    next: "install fewer packages at a time with libmamba, or use wheels in a venv",
  },
  { names: "conda-build boa rattler-build grayskull", kind: "build" },
  { names: "easy_install pip-sync pip-compile", kind: "install", modules: "piptools" },
  {
    names: "pytest py.test",
    modules: "pytest py.test",
    kind: "test",
    light: "-V --collect-only --co --fixtures --markers --cache-show",
    valued:
      "-k -m -c --rootdir -p -o --override-ini --confcutdir --ignore --deselect --junitxml --junit-xml --durations --maxfail --tb --cov --cov-report --cov-config --basetemp -W --pythonwarnings --log-level --timeout -n --numprocesses --dist --import-mode",
    workers: {
      options: "-n --numprocesses",
      write: "-n {n}",
      one: "0",
      all: "auto logical",
      allVariable: "PYTEST_XDIST_AUTO_NUM_WORKERS",
      letters: "xqvsl",
      elsewhere: {
        variables: "PYTEST_ADDOPTS",
        pattern: /^(?:.*\s)?(?:-[xqvsl]*n|--numprocesses(?:=|\s))\s*([\d\uE000]+|auto|logical)(?=\s|$)/,
      },
    },
    variables: [{ name: "PYTEST_XDIST_AUTO_NUM_WORKERS", value: "{n}" }],
    next: NEXT_TEST,
  },
  { names: "unittest", modules: "unittest unittest.main", kind: "test", next: NEXT_TEST },
  {
    names: "nose2 nosetests trial behave lettuce robot pabot ward green stestr zope-testrunner testr mutmut cosmic-ray",
    modules: "nose2 nose trial twisted.trial behave robot pabot ward green stestr mutmut",
    kind: "test",
    next: NEXT_TEST,
  },
  {
    names: "tox",
    modules: "tox",
    kind: "test",
    light: "-l --listenvs -a --listenvs-all --showconfig",
    valued: "-e -c --conf --workdir --root -x --override -p?",
    subcommands: {
      "list l config c quickstart q legacy-list devenv schema man": "light",
      exec: "test",
      // Without a number it runs as many as there are CPUs.
      "run-parallel p": { kind: "test", workers: { ...TOX_WORKERS, add: "after-subcommand" } },
    },
    other: "test",
    bare: "test",
    workers: TOX_WORKERS,
    next: "run one environment at a time (tox -e NAME), without -p",
  },
  {
    names: "nox",
    modules: "nox",
    kind: "test",
    light: "-l --list --list-sessions",
    next: "run one session at a time (nox -s NAME)",
  },
  {
    names: "mypy dmypy pyright basedpyright pyre pytype pylint pyanalyze ty vulture bandit prospector semgrep",
    modules: "mypy pyright pylint bandit",
    kind: "build",
    light: "-V",
    subcommands: { "status stop kill": "light" },
    other: "build",
    bare: "build",
    workers: { options: "-j --jobs", write: "-j {n}" },
    next: "check fewer files at a time",
  },
  { names: "pybuild", modules: "build", kind: "build", light: "-V" },
  {
    names: "setup.py",
    kind: "build",
    bare: "light",
    light: "-n",
    subcommands: { "test pytest": "test", "install develop": "install", "clean check register egg_info": "light" },
    other: "build",
  },
  {
    names: "manage.py django-admin",
    modules: "django",
    kind: "test",
    bare: "light",
    subcommands: { test: "test", "collectstatic compress": "light" },
    other: "light",
  },
  {
    names:
      "maturin setuptools-rust scikit-build cibuildwheel auditwheel pyinstaller nuitka nuitka3 pyoxidizer briefcase shiv pex cythonize cython",
    modules: "maturin cibuildwheel PyInstaller nuitka Cython",
    kind: "compile",
    light: "-V",
    subcommands: { "new init list-python show": "light", "publish upload": "compile" },
    other: "compile",
    bare: "compile",
  },
  {
    names: "sphinx-build sphinx-autobuild mkdocs jupyter-book pdoc pdoc3",
    modules: "sphinx mkdocs",
    kind: "build",
    bare: "light",
    light: "-V",
    subcommands: { "new get-deps clean create config": "light" },
    other: "build",
  },
  {
    names: "jupyter jupyter-lab jupyter-notebook papermill nbconvert",
    modules: "jupyter notebook",
    kind: "ml",
    bare: "light",
    subcommands: { "nbconvert execute lab notebook run": "ml" },
    other: "light",
  },
  {
    names: "torchrun accelerate deepspeed axolotl llamafactory-cli autotrain",
    modules: "torch.distributed.run torch.distributed.launch accelerate.commands.launch",
    kind: "ml",
    subcommands: { "config env": "light" },
    other: "ml",
    bare: "light",
  },
  { names: "streamlit gradio", kind: "ml", bare: "light", subcommands: { run: "ml" }, other: "light" },
  {
    names: "pre-commit prek",
    modules: "pre_commit",
    kind: "build",
    bare: "light",
    light: "-V",
    subcommands: { "run try-repo": "build", autoupdate: "install", "install-hooks": "install" },
    other: "light",
    next: "run one hook at a time (pre-commit run HOOK --files …)",
  },
];
