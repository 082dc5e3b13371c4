//! What is known of a call before its command is started.

/// A command that the agent is about to start.
#[derive(Debug, Clone, Default)]
pub struct TrackedCall {
    /// The process that will start it, of this user.
    pub agent: i32,
    /// What its command line may contain: the text as it was, as it was changed. Empty when that cannot be known.
    pub texts: Vec<String>,
    /// Value to raise the `oom_score_adj` of the job's processes to; never lowered.
    pub oom_score_adj: i32,
}

/// A command line shorter than this says too little to be taken for a part of a text, bytes.
const SHORTEST_PART: usize = 4;

/// Programs whose command line is a text to run.
const SHELLS: [&[u8]; 8] = [b"sh", b"bash", b"dash", b"zsh", b"ash", b"ksh", b"fish", b"busybox"];

/// A command line as it stands in /proc/PID/cmdline: words that end with a zero byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandLine<'a>(pub(super) &'a [u8]);

impl<'a> CommandLine<'a> {
    fn words(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == 0)
    }

    fn program(self) -> &'a [u8] {
        let first = self.words().next().unwrap_or_default();
        first.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    pub(super) fn is_shell(self) -> bool {
        let program = self.program();
        // A login shell's name begins with a dash.
        SHELLS.contains(&program.strip_prefix(b"-").unwrap_or(program))
    }

    /// An agent takes a snapshot of the login shell's environment before its first command: `bash -l -c …`.
    pub(super) fn is_login_snapshot(self) -> bool {
        self.is_shell() && self.words().skip(1).take(2).eq([b"-l", b"-c"])
    }

    pub(super) fn is_systemd_run(self) -> bool {
        self.program() == b"systemd-run"
    }

    pub(super) fn squashed(self) -> Vec<u8> {
        squash(self.0)
    }
}

/// A text without quotes, backslashes and white space: a shell in between may have added or removed them, or
/// split the text into words.
pub(super) fn squash(text: &[u8]) -> Vec<u8> {
    let is_kept = |byte: &u8| !matches!(byte, b'\'' | b'"' | b'\\' | 0) && !byte.is_ascii_whitespace();
    text.iter().copied().filter(is_kept).collect()
}

/// The length of the longest of `texts` that the line contains; both squashed.
pub(super) fn longest_match(line: &[u8], texts: &[Vec<u8>]) -> Option<usize> {
    texts.iter().filter(|text| contains(line, text)).map(Vec::len).max()
}

/// Whether a squashed line contains one of the texts, or is a part of one that says enough.
pub(super) fn is_of(line: &[u8], texts: &[Vec<u8>]) -> bool {
    let is_part = line.len() >= SHORTEST_PART && texts.iter().any(|text| contains(text, line));
    is_part || longest_match(line, texts).is_some()
}

/// Whether the bytes `part` stand in `whole`. No bytes at all stand nowhere.
fn contains(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len().max(1)).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of_match(line: &[u8], text: &str) -> Option<usize> {
        longest_match(&CommandLine(line).squashed(), &[squash(text.as_bytes())])
    }

    #[test]
    fn a_text_is_found_however_a_shell_has_quoted_it() {
        let text = "node -e 'console.log(\"it\\'s\")' && npm  test";
        let line = b"/usr/bin/bash\0-c\0source /tmp/s; cd /; eval 'node -e '\"'\"'console.log(\"it\\'\"'\"'s\")'\"'\"' && npm  test'; x\0";
        assert!(length_of_match(line, text).is_some());
        assert_eq!(length_of_match(line, "npm run test"), None);
        assert_eq!(length_of_match(b"bash\0-lic\0set +m; make\n -j4\0", "make -j4"), Some(7));
    }

    #[test]
    fn no_text_is_in_a_line_that_is_shorter() {
        assert_eq!(length_of_match(b"sh\0", "a longer text"), None);
        assert_eq!(longest_match(b"", &[]), None);
    }

    #[test]
    fn a_process_of_the_text_is_known_by_its_part_of_it() {
        let texts = [squash(b"setsid -f node 'my server.js' > log")];
        assert!(is_of(&CommandLine(b"node\0my server.js\0").squashed(), &texts));
        assert!(!is_of(&CommandLine(b"node\0other.js\0").squashed(), &texts));
        assert!(!is_of(&CommandLine(b"no\0").squashed(), &texts));
        assert!(!is_of(b"", &texts));
    }

    #[test]
    fn programs_are_told_apart() {
        assert!(CommandLine(b"/usr/bin/bash\0-c\0x\0").is_shell());
        assert!(CommandLine(b"-bash\0").is_shell());
        assert!(!CommandLine(b"/usr/bin/python3\0/tmp/bash\0").is_shell());
        assert!(CommandLine(b"bash\0-l\0-c\0export -p\0").is_login_snapshot());
        assert!(!CommandLine(b"bash\0-lic\0set +m; x\0").is_login_snapshot());
        assert!(CommandLine(b"/bin/systemd-run\0--user\0").is_systemd_run());
    }
}
