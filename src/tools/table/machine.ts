/** System packages, containers, media, models, browsers, agents, and runners of other people's scripts. */
import type { Entry, Tool } from "../schema.js";

const NEXT_PACKAGES = "install fewer packages at a time";
const pm = (names: string, heavy: string, light: string, extra: Partial<Tool> = {}): Tool => ({
  names,
  kind: "install",
  bare: "light",
  subcommands: { [heavy]: "install", [light]: "light" },
  other: "light",
  next: NEXT_PACKAGES,
  ...extra,
});

const RUN: Entry = {
  kind: "container",
  operandIsProgram: true,
  hasOwnH: true,
  valued:
    "-e --env --env-file -v --volume -p --publish -w --workdir -u --user --name -h --hostname --network --net -m --memory --memory-swap --cpus --mount --entrypoint --platform --label -l --restart --gpus --device --shm-size --ulimit --add-host --dns --cap-add --cap-drop --security-opt --pull --log-driver --tmpfs --user --userns --pid --ipc",
};
const COMPOSE: Entry = {
  kind: "container",
  bare: "light",
  valued: "-f --file -p --project-name --profile --env-file --project-directory --parallel --progress --ansi",
  subcommands: {
    build: "container",
    "up create run start restart": "container",
    "down ps logs ls config exec stop kill rm pull push images top port version events pause unpause cp stats wait watch attach scale volumes":
      "light",
  },
  other: "light",
};
const NEXT_CONTAINER =
  "build one image at a time with docker run -m or a builder with a memory limit, or build it elsewhere";
const CONTAINER: Entry = {
  kind: "container",
  bare: "light",
  elsewhere: true,
  light: "-v",
  valued: "-H --host --context -c --config -l --log-level",
  subcommands: {
    build: {
      kind: "container",
      valued:
        "-t --tag -f --file --build-arg --target --platform --label -m --memory --network --secret --ssh --cache-from --cache-to --output -o --progress",
    },
    run: RUN,
    create: RUN,
    buildx: { subcommands: { "build b bake f": "container" }, other: "light", bare: "light", valued: "--builder" },
    builder: { subcommands: { build: "container" }, other: "light", bare: "light" },
    image: { subcommands: { build: "container" }, other: "light", bare: "light" },
    container: { subcommands: { "run create": RUN }, other: "light", bare: "light" },
    compose: COMPOSE,
    bake: "container",
    load: "container",
  },
  other: "light",
  next: NEXT_CONTAINER,
};

const MODEL_STEP = "use a smaller or more quantised model, with fewer threads and a shorter context";
const MEDIA_STEP = "work on a shorter or smaller piece, with one thread (-threads 1)";
const BROWSER_STEP = "open one page at a time in one browser, or fetch the page without a browser";
const AGENT_STEP = "run one agent at a time, on a smaller task";

export const MACHINE: readonly Tool[] = [
  pm(
    "apt apt-get aptitude nala apt-fast",
    "install upgrade dist-upgrade full-upgrade build-dep reinstall safe-upgrade satisfy dselect-upgrade",
    "update remove purge autoremove list search show policy clean autoclean download changelog source check mark edit-sources moo",
    {
      light: "-s --simulate --dry-run --just-print --no-act --recon --print-uris",
      valued: "-o --option -c --config-file -t --target-release --default-release",
    },
  ),
  pm(
    "dnf yum microdnf dnf5 tdnf",
    "install upgrade update groupinstall reinstall builddep distro-sync group localinstall system-upgrade",
    "list info search remove erase repolist clean makecache check-update history provides autoremove repoquery config-manager module",
    {
      light: "--assumeno",
      valued: "--enablerepo --disablerepo --repo --exclude -x --setopt --installroot --releasever -c --config -R",
    },
  ),
  pm(
    "zypper",
    "install in update up dup dist-upgrade patch",
    "search se info if refresh ref repos lr remove rm list-updates lu clean",
    { light: "--dry-run -D" },
  ),
  {
    names: "pacman yay paru pamac trizen",
    kind: "install",
    bare: { kind: "install", needs: "-u --sysupgrade -Syu -Su -Syyu" },
    light: "-Q -Ss -Si -Qs -Qi -Ql -Qo -Qe -Qdt -Qm -Sc -Scc -Sg -Sl -Sy -R -Rs -Rns -Rn -F -Fy -T -V -h -p --print",
    other: "install",
    next: NEXT_PACKAGES,
  },
  pm("apk", "add upgrade fix", "del info search list update cache policy stats version", {
    light: "-s --simulate",
    valued: "-X --repository -p --root -t --virtual --keys-dir --repositories-file --wait",
  }),
  pm(
    "brew",
    "install upgrade reinstall bundle",
    "list ls search info doctor update uninstall remove rm cleanup config deps outdated services tap leaves uses home --version",
    { light: "-n --dry-run -v" },
  ),
  pm("snap flatpak", "install refresh update", "list search info find remove uninstall run connections services", {}),
  pm("pkg pkgin xbps-install eopkg opkg swupd", "install upgrade update", "search info list remove query clean", {}),
  { names: "dpkg", kind: "install", needs: "-i --install --configure -a", next: NEXT_PACKAGES },
  {
    names: "rpm",
    kind: "install",
    needs: "-i -U -F --install --upgrade -ivh -Uvh",
    light: "-q -qa -V",
    next: NEXT_PACKAGES,
  },
  { names: "docker podman nerdctl", ...CONTAINER },
  { names: "docker-compose podman-compose", ...COMPOSE, elsewhere: true, light: "-v", next: NEXT_CONTAINER },
  {
    names: "buildah",
    kind: "container",
    bare: "light",
    light: "-v",
    subcommands: { "bud build build-using-dockerfile run": "container" },
    other: "light",
    next: NEXT_CONTAINER,
  },
  {
    names: "buildctl kaniko earthly dagger nixpacks",
    kind: "container",
    bare: "light",
    elsewhere: true,
    subcommands: { "build call run": "container", "debug prune du version config help ls": "light" },
    other: "light",
  },
  {
    names: "kind minikube k3d k3s microk8s vagrant multipass limactl colima",
    kind: "container",
    bare: "light",
    elsewhere: true,
    subcommands: { "create start up build launch cluster": "container" },
    other: "light",
  },
  { names: "act", kind: "container", elsewhere: true, light: "-l --list -n --dryrun" },
  {
    names: "devcontainer skaffold tilt",
    kind: "container",
    bare: "light",
    elsewhere: true,
    subcommands: { "up build dev run": "container" },
    other: "light",
  },
  { names: "packer", kind: "container", bare: "light", subcommands: { build: "container" }, other: "light" },
  {
    names: "terraform tofu terragrunt pulumi cdk",
    kind: "build",
    bare: "light",
    subcommands: {
      "plan apply destroy import refresh up preview deploy synth diff": "build",
      init: "install",
      test: "test",
    },
    other: "light",
    next: "plan one target at a time with -parallelism=1",
  },
  {
    names: "qemu-system-x86_64 qemu-system-aarch64 qemu-img virt-install virt-builder mmdebstrap debootstrap",
    kind: "container",
    light: "-version",
    subcommands: { "info check snapshot": "light" },
    other: "container",
    bare: "container",
  },
  {
    names: "ffmpeg",
    kind: "media",
    bare: "light",
    singleDash: true,
    light:
      "-version -formats -codecs -encoders -decoders -filters -protocols -devices -hwaccels -pix_fmts -buildconf -muxers -demuxers -bsfs -layouts -sources -sinks -L -h",
    valued: "-i -f -c -vf -af -ss -t -to -b -r -s -filter_complex -map -preset -crf -threads",
    next: MEDIA_STEP,
  },
  {
    names:
      "ffplay HandBrakeCLI handbrake-cli mencoder melt gst-launch-1.0 x264 x265 SvtAv1EncApp aomenc rav1e vpxenc av1an mkvmerge MP4Box sox yt-dlp youtube-dl gallery-dl",
    kind: "media",
    light:
      "-V -version -F --list-formats -j --dump-json -J --dump-single-json --skip-download -s --simulate -g --get-url",
    next: MEDIA_STEP,
  },
  {
    names: "convert magick mogrify montage composite gm vips vipsthumbnail conjure",
    kind: "media",
    singleDash: true,
    light: "-version -list",
    bare: "light",
    subcommands: { "identify version list": "light" },
    other: "media",
    valued: "-list",
    next: "work on smaller pictures, or with -limit memory",
  },
  {
    names:
      "blender inkscape gimp gimp-console libreoffice soffice gs ghostscript povray ocrmypdf tesseract unpaper kdenlive_render manim audiveris img2pdf darktable-cli rawtherapee-cli openscad freecadcmd",
    kind: "media",
    light: "-v -V -version --list-langs",
    bare: "media",
    next: MEDIA_STEP,
  },
  {
    names:
      "whisper whisper-cli whisper.cpp whisper-ctranslate2 whisperx faster-whisper insanely-fast-whisper whisper-server",
    modules: "whisper whisperx",
    kind: "ml",
    next: MODEL_STEP,
  },
  {
    names:
      "llama-cli llama-server llama-bench llama-quantize llama-perplexity llama-embedding llama-run llama-simple llama-mtmd-cli llama-finetune llama.cpp llamafile koboldcpp mlx_lm.generate mlx_lm.server stable-diffusion.cpp piper vllm sglang lmdeploy tgi text-generation-launcher",
    modules: "vllm llama_cpp.server mlx_lm mlx_lm.generate vllm.entrypoints.openai.api_server",
    kind: "ml",
    light: "-v",
    next: MODEL_STEP,
  },
  {
    names: "ollama",
    kind: "ml",
    bare: "light",
    elsewhere: true,
    light: "-v",
    subcommands: {
      "run create serve start launch": "ml",
      "list ls ps show rm cp push stop help signin signout pull": "light",
    },
    other: "light",
    next: `${MODEL_STEP} (OLLAMA_NUM_PARALLEL=1 on the server)`,
  },
  {
    names: "lms llm",
    kind: "ml",
    bare: "light",
    subcommands: { "load chat server embed embed-multi": "ml" },
    other: "light",
    next: MODEL_STEP,
  },
  {
    names:
      "spacy rasa yolo demucs spleeter bark tts coqui-tts comfyui comfy invokeai-web nanotron lm_eval optimum-cli trtexec",
    modules: "spacy demucs lm_eval TTS.bin.synthesize",
    kind: "ml",
    bare: "light",
    subcommands: { "info validate init help version checks settings": "light" },
    other: "ml",
    next: MODEL_STEP,
  },
  {
    names:
      "chromium chromium-browser google-chrome google-chrome-stable google-chrome-beta chrome chrome-headless-shell headless_shell brave brave-browser microsoft-edge microsoft-edge-stable msedge vivaldi opera firefox firefox-esr librewolf epiphany epiphany-browser falkon konqueror midori qutebrowser wkhtmltopdf wkhtmltoimage phantomjs weasyprint browsh",
    kind: "browser",
    light: "-V -v -version --product-version",
    singleDash: true,
    next: BROWSER_STEP,
  },
  {
    names: "code code-server cursor electron idea pycharm webstorm",
    kind: "browser",
    light: "-v --list-extensions -s --status --install-extension",
    bare: "browser",
    next: BROWSER_STEP,
  },
  {
    names:
      "chromedriver geckodriver selenium selenium-server browser-use agent-browser playwright-cli playwright-mcp chrome-devtools-mcp",
    kind: "browser",
    light: "-V -v",
    next: BROWSER_STEP,
  },
  {
    names: "claude claude-code",
    kind: "agent",
    light: "-v",
    subcommands: { "mcp config update doctor install setup-token plugin auth": "light" },
    other: "agent",
    bare: "agent",
    next: AGENT_STEP,
  },
  {
    names: "codex",
    kind: "agent",
    light: "-V",
    subcommands: { "login logout mcp completion features help apply sandbox debug": "light" },
    other: "agent",
    bare: "agent",
    next: AGENT_STEP,
  },
  {
    names: "hermes hermes-agent",
    kind: "agent",
    bare: "agent",
    light: "-V",
    subcommands: { "chat acp": "agent", gateway: { bare: "light", subcommands: { run: "agent" }, other: "light" } },
    other: "light",
    next: AGENT_STEP,
  },
  {
    names:
      "opencode opencode-ai crush goose gemini gemini-cli qwen qwen-code amp auggie droid cursor-agent cline kilocode copilot openhands swe-agent sweagent aider plandex gpt-engineer openclaw kimi kimi-cli grok iflow codebuff rovodev kiro-cli devin trae-cli nanobot",
    kind: "agent",
    light: "-v -V",
    subcommands: {
      "auth login logout models config configure upgrade update uninstall version stats export import session sessions mcp info help doctor list providers skills":
        "light",
    },
    other: "agent",
    bare: "agent",
    next: AGENT_STEP,
  },
  {
    names: "just",
    kind: "script",
    script: { file: "justfile" },
    light:
      "-V -n --dry-run -l --list --summary -s --show --dump --evaluate --variables --fmt --init -e --edit --groups --usage --json",
    valued: "-f --justfile -d --working-directory --set --shell -s --show --dotenv-path --dotenv-filename --color",
    directory: "-d --working-directory",
    elsewhereOptions: "-f --justfile -g --global-justfile --set",
  },
  {
    names: "task go-task invoke inv taskipy poe doit",
    modules: "invoke",
    kind: "script",
    light: "-l --list -a --list-all --dry -n --dry-run --summary --init --status -V",
    subcommands: { "list help": "light" },
    other: "script",
    bare: "script",
  },
  { names: "npm-check-updates ncu", kind: "install", bare: "light", needs: "-u --upgrade" },
  {
    names: "bats",
    kind: "test",
    bare: "light",
    valued: "-f --filter -F --formatter --report-formatter -j --jobs -o --output --filter-tags --filter-status",
    light: "-c --count -v",
    other: "test",
    workers: { options: "-j --jobs", write: "--jobs {n}" },
    next: "run one test file at a time",
  },
  {
    names: "devbox",
    kind: "install",
    bare: "light",
    valued: "-c --config -e --env --env-file --environment",
    subcommands: {
      "install add update shell": "install",
      global: { bare: "light", subcommands: { "install add update pull": "install" }, other: "light" },
      run: { bare: "light", light: "-l --list", other: "script", operandIsProgram: true },
    },
    other: "light",
  },
  {
    names: "asdf mise rtx nvm fnm volta rbenv pyenv nodenv sdk proto goenv jenv vfox",
    kind: "install",
    bare: "light",
    subcommands: { "install i upgrade up": "install", "run r": "script" },
    other: "light",
    light: "-v",
  },
];
