/**
 * Programs that run another command given in their own words. One entry each, taken from the program's
 * manual: which of its options take a value, how many operands stand before the command, and what it does
 * to the environment.
 */

export interface Wrapper {
  /** The program's names, split by spaces. */
  names: string;
  /** Subcommands that make it one: `exec`, `bisect run`. Alternatives are split by `|`. */
  after?: string;
  /** Options that take a value, before and behind the subcommand. */
  valued?: string;
  /** Operands before the command. */
  operands?: number;
  /** `NAME=value` words before the command. */
  assignments?: true;
  /** Options whose value is shell text that is run. */
  texts?: string;
  /** Nothing but `texts` is run; operands are something else. */
  textsOnly?: true;
  /** `single`: a command of one word is shell text. `each`: every operand is a shell text. */
  operandText?: "single" | "each";
  /** Words that an option takes beyond its first value. */
  extraWords?: Readonly<Record<string, number>>;
  /** The command is a subcommand of the wrapper itself (`yarn workspace web test`). */
  again?: true;
  /** Without a command it is a shell that reads its standard input. */
  stdinShell?: true;
  /** Flags with which it runs nothing. */
  unless?: string;
  /** The command is what stands behind this option; without it nothing is run. */
  commandOption?: string;
  /** Words that end the command. */
  until?: string;
  /** The words are completed when it runs, so they are never edited. */
  template?: true;
  /** It runs the command without the caller's variables; with one of the flags it does keep them. */
  clears?: true | { unless: string };
  /** Flags with which it drops the caller's variables. */
  clearing?: string;
  /** The command runs in another directory. */
  moves?: true;
  /** Options whose value is the directory in which the command runs. */
  directory?: string;
  /** The command runs in a process tree that is not ours. */
  elsewhere?: "container" | "server";
  /** The command is the name of a package's program, with a version perhaps: `jest@29`. */
  packages?: true;
  /** Options whose value is a Python module that is run. */
  modules?: string;
  /** An operand is a Python script that is run. */
  pythonScript?: true;
}

const DOCKER_EXEC = "-e --env --env-file -u --user -w --workdir --detach-keys --index --context --host -H";
const UV =
  "--directory --project --config-file --cache-dir --color --allow-insecure-host -p --python --with --with-editable --with-requirements --extra --no-extra --group --no-group --only-group --package --env-file --index --default-index -i --index-url --extra-index-url -f --find-links --python-platform -w --from -c --constraints --overrides -b --build-constraints --index-strategy --keyring-provider --resolution --prerelease --exclude-newer --link-mode -C --config-setting --refresh-package -P --upgrade-package --no-binary-package --no-build-package";
const GIT = "-C -c --git-dir --work-tree --namespace --exec-path --config-env";

export const WRAPPERS: readonly Wrapper[] = [
  // Another user or another environment
  {
    names: "sudo",
    valued:
      "-u --user -g --group -p --prompt -C --close-from -D --chdir -h --host -R --chroot -r --role -t --type -T --command-timeout -U --other-user",
    assignments: true,
    clears: { unless: "-E --preserve-env" },
    directory: "-D --chdir",
  },
  { names: "doas", valued: "-u -a", unless: "-C", clears: true },
  { names: "pkexec", valued: "--user", clears: true },
  {
    names: "su",
    valued: "-c --command -g --group -G --supp-group -s --shell -w --whitelist-environment -T",
    operands: 1,
    texts: "-c --command --session-command",
    textsOnly: true,
    stdinShell: true,
    clearing: "- -l --login",
  },
  {
    names: "runuser",
    valued: "-u --user -g --group -G --supp-group -c --command -s --shell -w --whitelist-environment",
    texts: "-c --command --session-command",
    textsOnly: true,
    clearing: "- -l --login",
  },
  { names: "runuser", valued: "-u --user -g --group -G --supp-group" },
  { names: "gosu su-exec", operands: 1 },
  {
    names: "setpriv",
    valued:
      "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig --selinux-label --apparmor-profile --landlock-access --landlock-rule --seccomp-filter",
    clearing: "--reset-env",
  },
  { names: "chroot", operands: 1, valued: "--groups --userspec", moves: true },
  { names: "fakeroot", valued: "-l --lib --faked -s -i -b" },
  {
    names: "proot",
    valued: "-r --rootfs -R -S -b --bind -m --mount -q --qemu -w --pwd --cwd -k --kernel-release -i --change-id -v",
    moves: true,
  },
  { names: "firejail", valued: "" },
  { names: "bwrap", valued: "--bind --dev-bind --ro-bind --symlink", template: true },
  {
    names: "unshare",
    valued:
      "-R --root -w --wd -S --setuid -G --setgid --map-user --map-group --propagation --setgroups --monotonic --boottime",
  },
  { names: "nsenter", valued: "-t --target -S --setuid -G --setgid", clearing: "" },
  { names: "dbus-run-session", valued: "--config-file --dbus-daemon" },
  { names: "cross-env", assignments: true },
  { names: "cross-env-shell", assignments: true, operandText: "single" },
  { names: "dotenv dotenvx", after: "run", valued: "-e --env -f --file --env-file -q --quote" },
  {
    names: "dotenv dotenvx env-cmd dotenv-cli",
    valued: "-e --env -f --file -r --rc-file -p -v -c --cascade --environments",
    assignments: true,
  },
  { names: "direnv", after: "exec", operands: 1 },
  { names: "op", after: "run", valued: "--env-file --account --config --environment" },
  {
    names: "doppler",
    after: "run",
    valued: "-p --project -c --config -t --token --mount --scope --command",
    texts: "--command",
  },
  { names: "infisical", after: "run", valued: "--env --projectId --path --command --token", texts: "--command" },
  { names: "aws-vault", after: "exec", operands: 1, valued: "-d --duration -t --mfa-token --region" },
  { names: "chamber", after: "exec", operands: 1 },
  {
    names: "mise rtx",
    after: "exec|x",
    valued: "-C --cd -E --env -j --jobs -c --command",
    texts: "-c --command",
    template: true,
  },
  { names: "asdf", after: "exec" },
  { names: "rbenv pyenv nodenv goenv jenv", after: "exec" },
  { names: "volta", after: "run", valued: "--node --npm --pnpm --yarn" },
  { names: "fnm", after: "exec", valued: "--using --fnm-dir --arch" },
  { names: "nvm", after: "exec|run", operands: 1 },
  {
    names: "nix-shell",
    valued:
      "-A --attr -I -p --packages --run --command -E --expr --arg --argstr --option --keep --max-jobs -j --cores -i",
    texts: "--run --command",
    textsOnly: true,
    clearing: "--pure",
  },
  { names: "devbox", after: "run", commandOption: "--", clearing: "--pure" },
  {
    names: "nix",
    after: "develop|shell|env shell",
    valued: "-f --file -I --option --arg --argstr -k --keep-env-var",
    commandOption: "-c --command",
  },
  {
    names: "xterm alacritty kitty foot",
    valued: "-T -title --title -geometry --class",
    commandOption: "-e --command --",
    elsewhere: "server",
  },
  // Limits, priorities, time
  { names: "timeout gtimeout", valued: "-k --kill-after -s --signal", operands: 1 },
  { names: "nice gnice", valued: "-n --adjustment" },
  { names: "ionice", valued: "-c --class -n --classdata -P -u" },
  { names: "chrt", valued: "-T --sched-runtime -P --sched-period -D --sched-deadline", operands: 1 },
  { names: "taskset", valued: "", operands: 1 },
  {
    names: "numactl",
    valued: "-C --physcpubind -N --cpunodebind -m --membind -i --interleave -p --preferred -l --localalloc",
  },
  { names: "prlimit", valued: "-o --output" },
  { names: "cpulimit", valued: "-l --limit -p --pid -e --exe -P --path" },
  { names: "chpst", valued: "-u -U -e -/ -C -n -l -L -m -d -o -p -f -c -r -t -b" },
  { names: "cgexec", valued: "-g" },
  { names: "softlimit", valued: "-a -c -d -f -l -m -n -o -p -r -s -t" },
  {
    names: "systemd-run",
    valued:
      "-p --property -u --unit --description --slice -E --setenv --uid --gid --nice --working-directory -H --host -M --machine --service-type --on-active --on-boot --on-calendar --timer-property --path-property --socket-property",
    clears: { unless: "--scope" },
    directory: "--working-directory",
  },
  { names: "systemd-inhibit", valued: "--what --who --why --mode" },
  { names: "caffeinate", valued: "-t -w" },
  { names: "time gtime", valued: "-f --format -o --output" },
  { names: "nohup setsid unbuffer builtin eatmydata chronic" },
  { names: "command", unless: "-v -V" },
  { names: "exec", valued: "-a" },
  { names: "stdbuf", valued: "-i --input -o --output -e --error" },
  { names: "faketime", operands: 1, valued: "-m" },
  { names: "proxychains proxychains4 torsocks tsocks trickle", valued: "-f -d -u" },
  { names: "tini dumb-init catatonit", valued: "-p -e -r --rewrite" },
  {
    names: "flock",
    valued: "-c --command -w --wait --timeout -E --conflict-exit-code",
    operands: 1,
    texts: "-c --command",
  },
  { names: "sem", valued: "-j --jobs --id --fg --timeout" },
  // Looking at what runs
  {
    names: "strace",
    valued: "-a -b -e -E -I -o -O -p -P -s -S -u -U -X --output --trace --signal --string-limit --user --env",
  },
  { names: "ltrace", valued: "-a -A -D -e -l -n -o -p -s -u -x -F" },
  {
    names: "perf",
    after: "stat|record|trace",
    valued:
      "-e --event -o --output -p --pid -r --repeat -F --freq -C --cpu -I --interval-print -x --field-separator -m --mmap-pages -c --count --call-graph",
  },
  { names: "perf", after: "mem record|sched record|lock record|kmem record", valued: "-e -o" },
  { names: "valgrind", valued: "" },
  { names: "gdb", commandOption: "--args -args" },
  { names: "heaptrack", valued: "-o --output" },
  { names: "rr", after: "record", valued: "-o --output-trace-dir" },
  { names: "samply", after: "record", valued: "-o --output -r --rate" },
  { names: "py-spy", after: "record|top", valued: "-o --output -r --rate -d --duration -f --format -p --pid" },
  {
    names: "hyperfine",
    valued:
      "-w --warmup -m --min-runs -M --max-runs -r --runs -s --setup -p --prepare -C --conclude -c --cleanup -P --parameter-scan -D --parameter-step-size -L --parameter-list -S --shell --style --sort -u --time-unit --export-asciidoc --export-csv --export-json --export-markdown --export-orgmode --output --input -n --command-name -i",
    texts: "-s --setup -p --prepare -C --conclude -c --cleanup",
    operandText: "each",
    extraWords: { "-L": 1, "--parameter-list": 1, "-P": 2, "--parameter-scan": 2 },
  },
  {
    names: "script",
    valued:
      "-c --command -E --echo -I --log-in -O --log-out -B --log-io -T --log-timing -m --logging-format -o --output-limit",
    operands: 1,
    texts: "-c --command",
  },
  { names: "watch", valued: "-n --interval -q --equexit -s --shotsdir", operandText: "single" },
  {
    names: "xvfb-run",
    valued: "-e --error-file -f --auth-file -n --server-num -p --xauth-protocol -s --server-args -w --wait",
  },
  // Over and over, or on a change
  { names: "retry", valued: "-d --delay -m --message -t --times --tries -u --until -w --while -s --sleep -x --max -f" },
  {
    names: "watchexec",
    valued:
      "-w --watch -W --watch-non-recursive -e --exts -f --filter -i --ignore -s --signal --stop-signal --stop-timeout -d --debounce -o --on-busy-update --shell -E --env --project-origin --workdir --delay-run --poll",
    operandText: "single",
  },
  { names: "entr", valued: "" },
  {
    names: "nodemon",
    valued: "-x --exec -w --watch -e --ext -i --ignore -d --delay --signal --config --cwd",
    texts: "-x --exec",
    textsOnly: true,
  },
  {
    names: "chokidar",
    valued: "-c --command -d --debounce -t --throttle -i --ignore",
    texts: "-c --command",
    textsOnly: true,
  },
  {
    names: "concurrently conc",
    valued:
      "-n --names -c --prefix-colors -p --prefix -l --prefix-length -t --timestamp-format --restart-tries --restart-after -m --max-processes -s --success --kill-signal --name-separator -i --default-input-target --hide --teardown",
    operandText: "each",
  },
  {
    names: "xargs gxargs",
    valued:
      "-a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars --process-slot-var",
    template: true,
  },
  {
    names: "parallel",
    valued:
      "-j --jobs -N --max-replace-args -n --max-args -I -d --delimiter -a --arg-file --joblog --delay --timeout --retries --tagstring --colsep -C --results --memfree --load -P --max-procs --halt --nice --tmpdir --workdir --wd -E --env --basefile --block -L -s -l",
    until: "::: :::: :::+ ::::+",
    template: true,
  },
  { names: "git", after: "bisect run", valued: GIT },
  { names: "git", after: "submodule foreach", valued: GIT, operandText: "single", moves: true },
  {
    names: "git",
    after: "rebase",
    valued: `${GIT} -x --exec --onto -s --strategy -X --strategy-option`,
    texts: "-x --exec",
    textsOnly: true,
  },
  // Servers that run it for us
  {
    names: "tmux",
    after: "new-session|new|new-window|neww|split-window|splitw|respawn-pane|respawn-window",
    valued: "-L -S -f -c -e -F -n -s -t -x -y -l -p",
    operandText: "single",
    elsewhere: "server",
  },
  {
    names: "screen",
    valued: "-S -c -e -h -p -s -t -T -X -Logfile",
    unless: "-r -x -ls -list -wipe -R -RR -Q -X",
    elsewhere: "server",
  },
  { names: "zellij", after: "run", valued: "-d --direction -n --name --cwd --width --height", elsewhere: "server" },
  {
    names: "docker podman nerdctl",
    after: "exec|container exec|compose exec",
    valued: DOCKER_EXEC,
    operands: 1,
    elsewhere: "container",
  },
  {
    names: "docker-compose podman-compose",
    after: "exec",
    valued: `${DOCKER_EXEC} -f --file -p --project-name`,
    operands: 1,
    elsewhere: "container",
  },
  {
    names: "distrobox distrobox-enter toolbox",
    after: "enter|run",
    valued: "-n --name -c --container",
    elsewhere: "container",
  },
  { names: "lxc", after: "exec", operands: 1, elsewhere: "container" },
  {
    names: "devcontainer",
    after: "exec",
    valued: "--workspace-folder --container-id --config",
    elsewhere: "container",
  },
  { names: "busybox toybox" },
  // Programs of packages
  {
    names: "npx bunx pnpx",
    valued: "-p --package -c --call -w --workspace --userconfig --cache --registry --prefix --node-options --shell",
    texts: "-c --call",
    packages: true,
  },
  {
    names: "npm",
    after: "exec|x",
    valued: "-p --package -c --call -w --workspace --prefix -C --registry --cache",
    texts: "-c --call",
    packages: true,
  },
  {
    names: "npm",
    after: "explore",
    operands: 1,
    valued: "--prefix -C --registry --cache --shell",
    operandText: "single",
    moves: true,
  },
  {
    names: "pnpm",
    after: "exec|dlx",
    valued: "-C --dir --filter -F --package --registry",
    packages: true,
    directory: "-C --dir",
  },
  { names: "yarn", after: "exec|dlx", valued: "--cwd -p --package", packages: true },
  { names: "bun", after: "x", valued: "--cwd -p --package", packages: true },
  { names: "deno", after: "x", packages: true },
  { names: "corepack", packages: true },
  { names: "yarn", after: "workspace", valued: "--cwd", operands: 1, again: true },
  { names: "rustup", after: "run", operands: 1 },
  { names: "start-server-and-test", operandText: "each" },
  { names: "lerna", after: "exec", valued: "--scope --ignore --concurrency --since" },
  { names: "uv", after: "run|tool run", valued: UV, modules: "-m --module", packages: true, directory: "--directory" },
  { names: "uvx", valued: UV, packages: true },
  { names: "pipx", after: "run", valued: "--spec --python --pip-args --index-url --with -i", packages: true },
  {
    names: "poetry pdm pipenv rye",
    after: "run",
    valued: "-C --directory -P --project -p",
    directory: "-C --directory",
  },
  { names: "conda mamba micromamba", after: "run", valued: "-n --name -p --prefix --cwd -c", directory: "--cwd" },
  { names: "pixi", after: "run|exec", valued: "-e --environment --manifest-path -s --spec -c --channel" },
  { names: "bundle bundler", after: "exec", valued: "--gemfile -r" },
  {
    names: "coverage",
    after: "run",
    valued: "--source --source-pkgs --rcfile --data-file --include --omit --context --concurrency --save-signal",
    modules: "-m --module",
    pythonScript: true,
  },
  {
    names: "c8 nyc",
    valued:
      "-r --reporter --report-dir -o -x --exclude -n --include --temp-directory --temp-dir --cwd --all -e --extension --lines --functions --branches --statements --src",
  },
  { names: "opam", after: "exec" },
  { names: "cabal stack", after: "exec" },
  { names: "wine box64 qemu-x86_64 qemu-aarch64" },
  { names: "ccache sccache distcc icecc", valued: "" },
  { names: "emmake emconfigure emcmake" },
  { names: "scan-build bear", valued: "-o --output --append" },
  { names: "rtk", valued: "" },
  { names: "sg", operands: 1, texts: "-c", valued: "-c", textsOnly: true },
];

const byName = new Map<string, Wrapper[]>();
for (const wrapper of WRAPPERS) {
  for (const name of wrapper.names.split(" ")) byName.set(name, [...(byName.get(name) ?? []), wrapper]);
}

/** The entries of a program, in their order. */
export const wrappersNamed = (name: string): readonly Wrapper[] => byName.get(name) ?? [];

/** All names, for the first filter. */
export const wrapperNames = (): string[] => [...byName.keys()];
