/** Node, its package managers and its tools. */
import type { Entry, Tool } from "../schema.js";

const PACKAGE_SCRIPT: Entry = { kind: "script", script: { file: "package.json" } };
const TEST_SCRIPT: Entry = { kind: "test", script: { file: "package.json", name: "test" } };
const namedScript = (name: string): Entry => ({ kind: "script", script: { file: "package.json", name } });
const PREPACK: Entry = { kind: "script", script: { file: "package.json", name: "prepack", wordless: true } };
/** npm takes words for itself unless they stand behind `--`; pnpm and bun would hand `--` on to the script. */
const throughDashes = (entry: Entry): Entry =>
  entry.script === undefined ? entry : { ...entry, script: { ...entry.script, dashes: true } };
/** `npm init` writes a package.json; with a name it installs and runs `create-NAME`. */
const CREATE: Entry = { bare: "light", other: "install" };

const NPM_LIGHT =
  "ls list ll la view info show v outdated config c get set why explain root prefix bin pkg docs home bugs repo search s whoami login logout adduser ping profile owner author team token access deprecate dist-tag dist-tags cache doctor fund help help-search version star stars unstar unpublish org hook completion query edit explore shrinkwrap sbom diff stage trust";

const light = (names: string): Record<string, "light"> => ({ [names]: "light" });

const NEXT_TEST = "run one test file at a time, with a single worker";
const NEXT_BUILD = "build a smaller part, or without type checks and source maps, with a single worker";
const NEXT_INSTALL = "install fewer packages at a time, or without optional ones that compile (--omit=optional)";

export const JAVASCRIPT: readonly Tool[] = [
  {
    names: "npm",
    kind: "install",
    node: true,
    next: NEXT_INSTALL,
    valued:
      "-C --prefix -w --workspace --registry --loglevel --userconfig --globalconfig --cache --tag --otp --omit --include --install-strategy --maxsockets --script-shell --depth --before --cpu --os --libc -p --package",
    directory: "-C --prefix",
    elsewhereOptions: "-w --workspace --workspaces -ws",
    light: "-v --dry-run",
    bare: "light",
    subcommands: {
      "install i in ins inst insta instal isnt isnta isntal isntall add ci clean-install ic install-clean isntall-clean cit clean-install-test sit it install-test update up upgrade udpate dedupe ddp rebuild rb audit prune":
        "install",
      "uninstall un unlink remove rm r link ln": "light",
      "test t tst": {
        ...throughDashes(TEST_SCRIPT),
        next: "run one test file at a time (npm test -- FILE), with a single worker",
      },
      "run run-script rum urn": { ...throughDashes(PACKAGE_SCRIPT), bare: "light" },
      start: throughDashes(namedScript("start")),
      restart: throughDashes(namedScript("restart")),
      stop: throughDashes(namedScript("stop")),
      "create init innit": CREATE,
      "pack publish": PREPACK,
      exec: "light",
      x: "light",
      ...light(NPM_LIGHT),
    },
    other: "light",
  },
  {
    names: "pnpm",
    kind: "install",
    node: true,
    next: NEXT_INSTALL,
    valued:
      "-C --dir -F --filter --filter-prod --registry --reporter --loglevel --store-dir --virtual-store-dir --modules-dir --lockfile-dir --workspace-concurrency --child-concurrency --network-concurrency --resume-from",
    directory: "-C --dir",
    elsewhereOptions: "-r --recursive -F --filter --filter-prod -w --workspace-root",
    light: "-v",
    bare: "light",
    subcommands: {
      "install i ci add update up upgrade dedupe prune rebuild rb import deploy fetch patch-commit install-test it audit":
        "install",
      "test t tst": TEST_SCRIPT,
      "run run-script": { ...PACKAGE_SCRIPT, bare: "light" },
      "recursive multi m": { kind: "script", bare: "light" },
      start: namedScript("start"),
      create: CREATE,
      "init exec dlx": "light",
      "pack publish": PREPACK,
      ...light(
        "ls list la ll outdated why licenses config c get set root bin store cache env view info show doctor help login logout whoami search setup self-update server patch approve-builds ignored-builds cat-file cat-index find-hash catalog remove rm uninstall un link ln unlink audit-signatures",
      ),
    },
    other: { kind: "script", script: { file: "package.json", orProgram: true } },
  },
  {
    names: "yarn yarnpkg",
    kind: "install",
    node: true,
    next: NEXT_INSTALL,
    valued: "--cwd --registry --cache-folder --modules-folder --network-timeout --network-concurrency --mutex",
    directory: "--cwd",
    light: "-v",
    bare: "install",
    subcommands: {
      // Of a removal yarn makes a whole install.
      "install add remove up upgrade upgrade-interactive dedupe rebuild import unplug set patch-commit": "install",
      "global workspaces": {
        bare: "light",
        subcommands: { "add upgrade remove focus": "install", "run foreach": "script" },
        other: "light",
      },
      workspace: "light",
      test: TEST_SCRIPT,
      run: { ...PACKAGE_SCRIPT, bare: "light", script: { file: "package.json", orProgram: true } },
      create: CREATE,
      init: "light",
      "pack publish": PREPACK,
      ...light(
        "exec dlx info list why outdated config cache bin licenses audit check help version versions node npm plugin search explain constraints login logout owner tag team policies autoclean link unlink generate-lock-entry",
      ),
    },
    other: { kind: "script", script: { file: "package.json", orProgram: true } },
  },
  {
    names: "bun",
    kind: "install",
    next: NEXT_INSTALL,
    valued:
      "--cwd -c --config --registry --cache-dir --backend --preload -r -e --eval -p --print --port --env-file --filter -F",
    directory: "--cwd",
    elsewhereOptions: "--filter -F",
    light: "-v --revision -e --eval -p --print",
    bare: "light",
    subcommands: {
      "install i add a update ci patch": "install",
      test: { kind: "test", next: NEXT_TEST },
      run: { ...PACKAGE_SCRIPT, bare: "light", script: { file: "package.json", orProgram: true } },
      build: "build",
      "create c": CREATE,
      "upgrade x": "light",
      "pack publish": PREPACK,
      ...light("init pm outdated info why audit repl exec remove rm link unlink completions help discord"),
    },
    other: { kind: "script", script: { file: "package.json", orProgram: true } },
  },
  {
    names: "deno",
    kind: "build",
    valued: "-c --config --import-map --lock -r --reload -L --log-level --cert --location --seed --v8-flags",
    light: "-V",
    bare: "light",
    subcommands: {
      test: { kind: "test", next: NEXT_TEST, valued: "--filter --reporter --coverage --junit-path" },
      bench: "test",
      compile: "compile",
      "check lint bundle doc": "build",
      "install i add cache update approve-scripts": "install",
      task: { kind: "script", bare: "light" },
      ...light(
        "run eval fmt info repl init types upgrade completions lsp jupyter outdated publish serve clean deploy remove uninstall",
      ),
    },
    other: "light",
  },
  {
    names: "node nodejs",
    valued:
      "-r --require --import --loader --experimental-loader -e --eval -p --print -C --conditions --env-file --env-file-if-exists --test-reporter --test-reporter-destination --test-name-pattern --test-concurrency --inspect-port --title --icu-data-dir --input-type --watch-path --stack-trace-limit",
    kind: "test",
    needs: "--test",
    node: true,
    light: "-v -e --eval -p --print -c --check",
    workers: { options: "--test-concurrency", write: "--test-concurrency={n}" },
    next: NEXT_TEST,
  },
  {
    names: "tsx ts-node ts-node-esm esno jiti swc-node",
    kind: "test",
    needs: "--test",
    node: true,
    valued: "-r --require --import --tsconfig -P --project -O --compilerOptions",
    light: "-v -e -p",
  },
  {
    names: "jest",
    kind: "test",
    node: true,
    valued:
      "-c --config -t --testNamePattern --testPathPattern --testPathPatterns --rootDir --reporters --coverageReporters --coverageDirectory --env --shard --maxConcurrency --testTimeout --selectProjects -o --outputFile --seed",
    light: "-v --listTests --showConfig --clearCache --init",
    workers: {
      options: "-w --maxWorkers --max-workers",
      write: "--maxWorkers={n}",
      writeOne: "--runInBand",
      serial: "-i --runInBand --run-in-band",
      add: "end",
    },
    next: NEXT_TEST,
  },
  {
    names: "vitest",
    kind: "test",
    node: true,
    valued:
      "-c --config -t --testNamePattern -r --root --dir --reporter --outputFile --project --shard --testTimeout --environment --pool --mode --retry",
    light: "-v",
    subcommands: { "list init": "light" },
    other: "test",
    bare: "test",
    workers: {
      options:
        "--maxWorkers --max-workers --minWorkers --min-workers --poolOptions.forks.maxForks --poolOptions.threads.maxThreads",
      write: "--maxWorkers={n}",
      serial:
        "--no-file-parallelism --fileParallelism=false --poolOptions.threads.singleThread --poolOptions.forks.singleFork",
    },
    variables: [{ name: "VITEST_MAX_WORKERS", value: "{n}" }],
    next: NEXT_TEST,
  },
  {
    names: "playwright @playwright/test",
    kind: "test",
    node: true,
    light: "-V",
    bare: "light",
    valued:
      "-c --config -g --grep --grep-invert --project --reporter --retries --timeout --shard --output --trace --browser --repeat-each --max-failures --global-timeout",
    subcommands: {
      test: {
        kind: "test",
        light: "--list",
        workers: { options: "-j --workers", write: "--workers={n}", add: "end" },
        next: "run one spec file with --workers=1 and one browser project",
      },
      "install install-deps": { kind: "install", light: "--dry-run --list" },
      "open codegen screenshot pdf cr ff wk": "browser",
      "uninstall show-report merge-reports show-trace clear-cache help init-agents": "light",
    },
    other: "light",
  },
  {
    names: "cypress",
    kind: "test",
    node: true,
    bare: "light",
    light: "-v",
    subcommands: { "run open": "test", install: "install", "verify version info cache help": "light" },
    other: "light",
    next: "run one spec at a time (--spec FILE) with numTestsKeptInMemory=0",
  },
  {
    names: "mocha _mocha",
    kind: "test",
    node: true,
    light: "-V --list-reporters --list-interfaces",
    workers: { options: "-j --jobs", write: "--jobs {n}" },
    valued: "-r --require -g --grep -f --fgrep -t --timeout -R --reporter -C --config --spec",
    next: NEXT_TEST,
  },
  {
    names: "ava",
    kind: "test",
    node: true,
    workers: { options: "-c --concurrency", write: "--concurrency={n}", serial: "-s --serial" },
    valued: "-m --match -T --timeout --config --node-arguments",
    next: NEXT_TEST,
  },
  {
    names: "jasmine karma tap tape tapx uvu japa wdio nightwatch testcafe web-test-runner wtr qunit testem stryker",
    kind: "test",
    node: true,
    light: "-v",
    next: NEXT_TEST,
  },
  {
    names: "react-scripts craco ng @angular/cli vue-cli-service @vue/cli-service",
    kind: "build",
    node: true,
    bare: "light",
    light: "-v",
    subcommands: {
      "test t e2e e": "test",
      "build b serve s start dev": "build",
      "add update": "install",
      "new n": "install",
      "lint l": "build",
      "generate g config analytics cache completion version v doc d inspect eject extract-i18n": "light",
    },
    other: "light",
    next: NEXT_BUILD,
  },
  {
    names: "next",
    kind: "build",
    node: true,
    bare: "build",
    light: "-v",
    subcommands: { "build dev lint": "build", "start info telemetry typegen": "light" },
    other: "build",
    variables: [{ name: "CIRCLE_NODE_TOTAL", value: "{n+1}" }],
    next: NEXT_BUILD,
  },
  {
    names: "vite",
    kind: "build",
    node: true,
    bare: "light",
    light: "-v",
    valued: "-c --config --base -l --logLevel -m --mode --outDir --target --port --host",
    subcommands: { build: "build", "dev serve preview optimize": "light" },
    other: "light",
    next: NEXT_BUILD,
  },
  {
    names:
      "nuxt nuxi astro remix react-router svelte-kit gatsby docusaurus vuepress vitepress eleventy blitz redwood rw expo ionic quasar sapper umi",
    kind: "build",
    node: true,
    bare: "light",
    light: "-v",
    subcommands: {
      "build generate export check prebuild build:web typecheck bundle": "build",
      "start dev serve preview init info telemetry login": "light",
      test: "test",
      "install add": "install",
    },
    other: "light",
    next: NEXT_BUILD,
  },
  {
    names: "storybook sb start-storybook build-storybook",
    kind: "build",
    node: true,
    light: "-v",
    bare: "build",
    subcommands: { "init add upgrade": "install" },
    other: "build",
  },
  {
    names:
      "webpack webpack-cli rspack rollup parcel esbuild tsup tsdown unbuild rolldown microbundle ncc swc babel metro pkgroll browserify bili snowpack rsbuild nest",
    kind: "build",
    node: true,
    light: "-v -V",
    subcommands: { "info version help i init": "light" },
    other: "build",
    bare: "build",
    next: NEXT_BUILD,
  },
  {
    names: "tsc vue-tsc tsgo tspc svelte-check",
    kind: "build",
    node: true,
    light: "-v --init --showConfig --listFilesOnly",
    next: "check a smaller project (tsc -p), with --incremental and skipLibCheck",
  },
  {
    names: "eslint xo standard ts-standard",
    kind: "build",
    node: true,
    light: "-v --init --print-config --env-info",
    valued: "-c --config --ext --rulesdir --parser -f --format -o --output-file --cache-location --max-warnings",
    workers: { options: "--concurrency", write: "--concurrency={n}", serial: "", all: "auto" },
    next: "lint fewer files at a time",
  },
  {
    names:
      "stylelint knip depcheck madge dependency-cruiser depcruise typedoc api-extractor jsdoc size-limit source-map-explorer webpack-bundle-analyzer",
    kind: "build",
    node: true,
    light: "-v",
  },
  {
    names: "turbo",
    kind: "build",
    node: true,
    bare: "light",
    light: "--dry --dry-run --dry=json",
    valued: "-F --filter --concurrency --cwd --cache-dir --log-order --output-logs --api --token --team --scope",
    subcommands: {
      "login logout link unlink daemon ls prune info query scan telemetry completion generate gen config bin": "light",
    },
    other: "build",
    workers: { options: "--concurrency", write: "--concurrency={n}", add: "end" },
    next: "build one package at a time (--filter PACKAGE --concurrency=1)",
  },
  {
    names: "nx",
    kind: "build",
    node: true,
    bare: "light",
    light: "--dry-run --graph",
    valued: "-t --target --targets -p --projects --exclude --base --head -c --configuration --parallel",
    subcommands: {
      "graph dep-graph show list report daemon reset init login connect print-affected format format:check format:write sync generate g migrate repair add view-logs":
        "light",
    },
    other: "build",
    variables: [{ name: "NX_PARALLEL", value: "{n}" }],
    workers: { options: "--parallel", write: "--parallel={n}" },
  },
  {
    names: "lerna",
    kind: "script",
    node: true,
    bare: "light",
    valued: "--scope --ignore --concurrency --since",
    subcommands: {
      run: "script",
      bootstrap: "install",
      "ls list la ll changed diff info init version publish create link clean add exec repair watch": "light",
    },
    other: "light",
    workers: { options: "--concurrency", write: "--concurrency={n}", add: "end" },
  },
  {
    names: "rush rushx lage",
    kind: "build",
    node: true,
    bare: "light",
    subcommands: { "install update add": "install", "list version init check help scan": "light" },
    other: "build",
  },
  { names: "gulp grunt jake brunch", kind: "build", node: true, light: "-v -V -T --tasks --tasks-simple" },
  { names: "npm-run-all run-s run-p npm-run-all2", kind: "script", node: true, bare: "light" },
  {
    names: "create",
    pattern: /^(?:create-[a-z0-9._-]+|@[a-z0-9._-]+\/create(?:-[a-z0-9._-]+)?)$/,
    kind: "install",
    node: true,
  },
  {
    names: "puppeteer",
    kind: "browser",
    node: true,
    bare: "light",
    subcommands: { browsers: { subcommands: { install: "install" }, other: "light", bare: "light" } },
    other: "light",
  },
  {
    names: "lighthouse lhci pa11y pa11y-ci backstop percy mmdc capture-website pageres decktape",
    kind: "browser",
    node: true,
    subcommands: { "healthcheck open upload": "light" },
    other: "browser",
  },
  { names: "electron-builder electron-forge electron-packager nexe caxa", kind: "build", node: true, light: "-v" },
  { names: "prisma", kind: "build", node: true, bare: "light", subcommands: { generate: "build" }, other: "light" },
  {
    names: "node-gyp node-pre-gyp prebuildify node-gyp-build cmake-js",
    kind: "compile",
    node: true,
    bare: "light",
    light: "-v",
    subcommands: { "rebuild build install configure": "compile", "list remove clean": "light" },
    other: "light",
    valued: "-C --directory",
    workers: { options: "-j --jobs", write: "-j {n}" },
  },
  { names: "napi", kind: "compile", node: true, bare: "light", subcommands: { build: "compile" }, other: "light" },
  {
    names: "wasm-pack",
    kind: "compile",
    bare: "light",
    subcommands: { build: "compile", test: "test" },
    other: "light",
  },
];
