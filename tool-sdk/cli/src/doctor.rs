//! The command `doctor`: reports the sandbox support and other capabilities of this machine, and
//! which protections are weaker than on others.

use std::env::consts::{ARCH, OS};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use serde_json::{Value, json};
use tool_sdk_core::Mode;
use tool_sdk_process::{
    internal,
    sandbox::{self, SandboxPolicy, SandboxSupport, SelfTestAttempt, SelfTestReport},
};

use super::exit::{self, CommandError, Result};
use super::settings::Settings;
use super::{Io, args, state_store, style};

/// The shells that are searched in `PATH`.
const SHELLS: &[&str] = &["bash", "sh", "dash", "zsh", "fish", "pwsh", "powershell"];

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let policy = settings.sandbox.clone();
    let report = DoctorReport {
        support: sandbox::probe(),
        shells: find_shells(io),
        state: settings.state_dir.clone().map(StateDir::inspect),
        root_around_state: settings.state_inside_root().map(|(_, root)| root),
        missing: unmet_requirements(&policy),
        self_test: run_self_test(matches)?,
        openat2: has_openat2(),
        interrupted: InterruptedChanges::inspect(settings),
        secret_sources: settings.secret_store().describe_sources(),
        untrusted: settings.untrusted_folders(),
        plan_mode: state_store::plan_mode_note(settings),
        #[cfg(feature = "net")]
        web: WebReport::inspect(settings, io),
        policy,
    };
    if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{:#}", report.to_json())?;
    } else {
        for line in report.to_lines() {
            writeln!(io.stdout, "{}", style::sanitize_text(&line))?;
        }
    }
    Ok(if report.is_ok() { 0 } else { exit::FAILED })
}

/// The content of the report.
struct DoctorReport {
    policy: SandboxPolicy,
    support: SandboxSupport,
    openat2: bool,
    shells: Vec<(&'static str, PathBuf)>,
    state: Option<StateDir>,
    /// The root that contains the state folder.
    root_around_state: Option<PathBuf>,
    /// Requirements of the configuration that the machine does not meet.
    missing: Vec<String>,
    self_test: Option<SelfTestReport>,
    interrupted: InterruptedChanges,
    /// Where tools look up their variables.
    secret_sources: Vec<String>,
    /// The roots that bring something for models and are not trusted, with how much.
    untrusted: Vec<(PathBuf, usize)>,
    /// That calls are in plan mode, which a tool entered.
    plan_mode: Option<String>,
    #[cfg(feature = "net")]
    web: WebReport,
}

impl DoctorReport {
    fn is_ok(&self) -> bool {
        self.missing.is_empty() && self.self_test.as_ref().is_none_or(SelfTestReport::has_passed)
    }

    fn to_json(&self) -> Value {
        let shell = |(name, path): &(&str, PathBuf)| json!({ "name": name, "path": path });
        #[cfg(feature = "net")]
        let web = self.web.to_json();
        #[cfg(not(feature = "net"))]
        let web = Value::Null;
        json!({
            "ok": self.is_ok(),
            "platform": { "os": OS, "arch": ARCH, "weaker": self.weaknesses() },
            "sandbox": {
                "configured": {
                    "mode": self.policy.mode(),
                    "level": self.policy.level(),
                    "network": self.policy.has_network(),
                    "auto_allow": self.policy.allows_confined_commands(),
                },
                "landlock": self.support.landlock,
                "user_namespaces": self.support.namespaces,
                "seccomp": self.support.seccomp,
                "filesystem": self.support.status.filesystem,
                "network": self.support.status.network,
                "processes": self.support.status.processes,
                "reasons": self.support.status.reasons,
            },
            "openat2": self.openat2,
            "shells": self.shells.iter().map(shell).collect::<Vec<_>>(),
            "state": self.state.as_ref().map(StateDir::to_json),
            "secrets": self.secret_sources,
            "untrusted": self.untrusted.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            "plan_mode": self.plan_mode,
            "web": web,
            "missing": self.missing,
            "interrupted_changes": self.interrupted.to_json(),
            "self_test": self.self_test.as_ref().map(self_test_json),
        })
    }

    fn to_lines(&self) -> Vec<String> {
        let SandboxSupport { status, landlock, namespaces, seccomp, .. } = &self.support;
        let landlock = landlock.map_or("no".to_owned(), |version| format!("version {version}"));
        let shells: Vec<&str> = self.shells.iter().map(|(name, _)| *name).collect();
        let mut lines = vec![
            format!("platform    {OS} {ARCH}"),
            format!(
                "sandbox     filesystem {}, network {}, processes {}",
                status.filesystem, status.network, status.processes
            ),
            format!(
                "            landlock {landlock}, user namespaces {}, seccomp {}",
                yes_or_no(*namespaces),
                yes_or_no(*seccomp)
            ),
            format!(
                "configured  {}, {}, network {}{}",
                self.policy.mode(),
                self.policy.level(),
                if self.policy.has_network() { "allowed" } else { "refused" },
                auto_allow_note(&self.policy),
            ),
            format!("openat2     {}", yes_or_no(self.openat2)),
            format!(
                "shells      {}",
                if shells.is_empty() { "none".into() } else { shells.join(", ") }
            ),
            match &self.state {
                Some(state) => {
                    format!("state       {} ({})", state.path.display(), state.describe())
                }
                None => "state       none: no home folder is known".to_owned(),
            },
        ];
        lines.push(format!("secrets     from {}", self.secret_sources.join(", ")));
        lines.extend(self.untrusted.iter().map(|(path, count)| {
            let path = path.display();
            format!("untrusted   {path}: {count} agents or skills wait for `trust {path}`")
        }));
        lines.extend(self.plan_mode.iter().map(|note| format!("plan mode   {note}")));
        #[cfg(feature = "net")]
        lines.extend(self.web.to_lines());
        lines.extend(self.weaknesses().into_iter().map(|what| format!("weaker      {what}")));
        lines.extend(self.missing.iter().map(|what| format!("missing     {what}")));
        lines.extend(self.interrupted.to_lines());
        if let Some(tested) = &self.self_test {
            lines.extend(tested.attempts.iter().map(attempt_line));
            lines.push(self_test_summary(tested));
        }
        lines
    }

    /// Returns the protections that are weaker here than on other systems.
    fn weaknesses(&self) -> Vec<String> {
        let mut weaker = self.support.status.reasons.clone();
        if !self.openat2 {
            weaker.push(
                "paths are resolved component by component, because openat2 is not available"
                    .into(),
            );
        }
        if let Some(root) = &self.root_around_state {
            weaker.push(format!(
                "no approvals are stored: the state folder lies inside of the root `{}`, where \
                 tools may write; choose another one with `--state-dir`",
                root.display()
            ));
        }
        if cfg!(target_os = "linux") {
            weaker
                .push("path rules are case-sensitive, even on case-insensitive mounts".to_owned());
        }
        if !internal::receives_sigchld() {
            weaker.push("no command can run: SIGCHLD is ignored, so exit codes are lost".into());
        }
        if !cfg!(target_os = "linux") {
            weaker.push("ending a command may leave processes that it started".to_owned());
        } else if !internal::has_rlimit_tags() {
            weaker.push(
                "without a sandbox, a process that changes its parent, session and environment \
                 at once outlives its command: the limit that would identify it (RLIMIT_LOCKS) \
                 cannot be set"
                    .to_owned(),
            );
        }
        if !cfg!(unix) {
            weaker.push("approval prompts at a terminal are not supported".to_owned());
        }
        match self.state.as_ref().map(|state| (state, state.mode.unwrap_or_default())) {
            Some((state, mode)) if mode & 0o022 != 0 => weaker.push(format!(
                "nothing of the state folder counts, because other users may write to it: no approvals, \
                 trusted folders, memory or secrets; `chmod 700 {}` corrects it",
                style::shell_quote(&state.path.to_string_lossy())
            )),
            Some((_, mode)) if mode & 0o077 != 0 => {
                weaker.push("other users can read the state folder".to_owned());
            }
            _ => {}
        }
        weaker
    }
}

/// Says whether confined commands run without an approval, if that is configured.
fn auto_allow_note(policy: &SandboxPolicy) -> &'static str {
    match (policy.has_auto_allow(), policy.allows_confined_commands()) {
        (false, _) => "",
        (true, true) => ", confined commands run without approval",
        (true, false) if policy.is_off() => {
            ", no commands run without approval: the sandbox is off"
        }
        (true, false) if policy.has_network() => {
            ", no commands run without approval: they reach the network"
        }
        (true, false) => ", no commands run without approval: the sandbox is not enforced in full",
    }
}

fn yes_or_no(it_is: bool) -> &'static str {
    if it_is { "yes" } else { "no" }
}

/// Returns the requirements of `policy` that the sandbox does not meet.
fn unmet_requirements(policy: &SandboxPolicy) -> Vec<String> {
    if policy.mode() != sandbox::SandboxMode::Required || policy.is_off() {
        return Vec::new();
    }
    let status = policy.status();
    let met = policy.is_met_by(&status);
    if met { Vec::new() } else { vec![format!("the sandbox is required: {status}")] }
}

fn run_self_test(matches: &ArgMatches) -> Result<Option<SelfTestReport>> {
    if !matches.get_flag(args::SELF_TEST) {
        return Ok(None);
    }
    let tested = sandbox::self_test().map_err(|error| {
        let words = format_args!("the sandbox cannot be tested: {error}");
        CommandError::new(exit::FAILED, tool_sdk_core::ToolError::unavailable(words))
    })?;
    Ok(Some(tested))
}

fn self_test_json(tested: &SelfTestReport) -> Value {
    json!({
        "passed": tested.has_passed(),
        "tried": tested.attempted_count(),
        "skipped": tested.attempts.len() - tested.attempted_count(),
        "attempts": tested.attempts,
    })
}

fn attempt_line(attempt: &SelfTestAttempt) -> String {
    let verdict = match attempt.passed {
        Some(true) => "ok",
        Some(false) => "FAILED",
        None => "skipped",
    };
    let wanted = if attempt.allowed { "may" } else { "may not" };
    format!("{verdict:<11} {wanted} {}: {}", attempt.name, attempt.detail)
}

fn self_test_summary(tested: &SelfTestReport) -> String {
    let skipped = tested.attempts.iter().filter(|attempt| attempt.passed.is_none());
    let mut reasons: Vec<&str> = skipped.map(|attempt| attempt.detail.as_str()).collect();
    let count = reasons.len();
    reasons.dedup();
    let why = if count == 0 { String::new() } else { format!(" ({})", reasons.join("; ")) };
    format!("sandbox tests: {} run, {count} skipped{why}", tested.attempted_count())
}

/// Finds the shells in `PATH`.
fn find_shells(io: &Io<'_>) -> Vec<(&'static str, PathBuf)> {
    let path = io.env_var("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let at = |name: &str, folder: &PathBuf| {
        let names = [folder.join(name), folder.join(format!("{name}.exe"))];
        names.into_iter().find(|path| path.is_file())
    };
    let find = |name: &&'static str| {
        folders.iter().find_map(|folder| at(name, folder)).map(|path| (*name, path))
    };
    SHELLS.iter().filter_map(find).collect()
}

/// What tools on the web can do.
#[cfg(feature = "net")]
struct WebReport {
    /// The providers of web search, each with the variable of its key.
    search: Vec<(&'static str, Option<&'static str>)>,
    /// Whether the program that extracts the text of a PDF is installed.
    reads_pdf: bool,
}

#[cfg(feature = "net")]
impl WebReport {
    fn inspect(settings: &Settings, io: &Io<'_>) -> Self {
        let search = settings.web.search.iter().map(|it| (it.name(), it.key_name())).collect();
        let path = io.env_var("PATH").unwrap_or_default();
        let reads_pdf = std::env::split_paths(&path).any(|dir| dir.join("pdftotext").is_file());
        Self { search, reads_pdf }
    }

    fn to_json(&self) -> Value {
        let provider = |(name, key): &(&str, Option<&str>)| json!({ "name": name, "key": key });
        let search: Vec<_> = self.search.iter().map(provider).collect();
        json!({ "search": search, "pdftotext": self.reads_pdf })
    }

    fn to_lines(&self) -> [String; 2] {
        let provider = |(name, key): &(&str, Option<&str>)| match key {
            Some(key) => format!("{name} with the key `{key}`"),
            None => (*name).to_owned(),
        };
        let search: Vec<_> = self.search.iter().map(provider).collect();
        let search = match &*search {
            [] => "no provider; name one with `--web-search` or `web.search`: brave, exa, \
                   openrouter, tavily, or searxng=URL"
                .to_owned(),
            search => search.join(", "),
        };
        let pdf = match self.reads_pdf {
            true => "yes, by pdftotext",
            false => "no: pdftotext (poppler) is not installed",
        };
        [format!("web search  {search}"), format!("text of PDF {pdf}")]
    }
}

/// Changes of files that killed processes left half made.
struct InterruptedChanges {
    recovered: usize,
    /// Why others were left as they are.
    left: Vec<String>,
    /// How many wait for the next change below their root.
    waiting: usize,
}

impl InterruptedChanges {
    /// Recovers them, unless the mode changes no files.
    fn inspect(settings: &Settings) -> Self {
        let workspace = settings.workspace_with_journal();
        let (recovered, left) = match settings.mode {
            Mode::Plan | Mode::Explore => (0, Vec::new()),
            _ => workspace.recover_interrupted(),
        };
        Self { recovered, left, waiting: workspace.count_interrupted().0 }
    }

    fn to_json(&self) -> Value {
        json!({ "recovered": self.recovered, "left": self.left, "waiting": self.waiting })
    }

    fn to_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.recovered > 0 {
            lines.push(format!(
                "recovered   {} of files",
                style::count_noun(self.recovered, "interrupted change")
            ));
        }
        lines.extend(self.left.iter().map(|why| format!("left        {why}")));
        if self.waiting > 0 {
            lines.push(format!(
                "interrupted {} of files; the next change below the folder recovers what is left",
                style::count_noun(self.waiting, "change")
            ));
        }
        lines
    }
}

/// The state folder: path, permissions, whether it can be used.
struct StateDir {
    path: PathBuf,
    exists: bool,
    /// Whether it is a folder, if it exists.
    is_folder: bool,
    writable: bool,
    /// The Unix permission bits.
    mode: Option<u32>,
}

impl StateDir {
    fn inspect(path: PathBuf) -> Self {
        let facts = path.metadata().ok();
        let exists = facts.is_some();
        let is_folder = facts.as_ref().is_none_or(std::fs::Metadata::is_dir);
        // A missing folder would be created in its nearest existing ancestor.
        let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(&path);
        let writable = there.is_dir() && is_writable(there);
        Self { exists, is_folder, writable, mode: facts.as_ref().and_then(permission_bits), path }
    }

    fn to_json(&self) -> Value {
        json!({
            "path": self.path,
            "exists": self.exists,
            "writable": self.writable,
            "mode": self.mode.map(|mode| format!("{mode:04o}")),
        })
    }

    fn describe(&self) -> String {
        if !self.is_folder {
            return "not a folder, so no state is stored".to_owned();
        }
        let writable = if self.writable { "writable" } else { "not writable" };
        match self.mode {
            Some(mode) => format!("{writable}, mode {mode:04o}"),
            None if self.exists => writable.to_owned(),
            None => format!("{writable}, not created yet"),
        }
    }
}

#[cfg(unix)]
fn permission_bits(facts: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(facts.permissions().mode() & 0o7777)
}

/// Only Unix has permission bits.
#[cfg(not(unix))]
fn permission_bits(_: &std::fs::Metadata) -> Option<u32> {
    None
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|facts| !facts.permissions().readonly())
}

#[cfg(target_os = "linux")]
fn has_openat2() -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok()
}

/// Only Linux has this system call.
#[cfg(not(target_os = "linux"))]
fn has_openat2() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{TestCli, run};

    fn run_doctor(setting: &TestCli, args: &[&str]) -> (u8, Value) {
        let ran = setting.run(&[&["doctor", "--json"], args].concat());
        (ran.code, serde_json::from_str(&ran.out).unwrap())
    }

    #[test]
    fn the_json_report_has_every_key() {
        let mut setting = TestCli::default();
        let shell = setting.write_text("bin/zsh", "");
        let bin = Path::new(&shell).parent().unwrap().display().to_string();
        setting.env = vec![("PATH", bin), ("TOOL_SDK_STATE_DIR", "kept".to_owned())];
        let (code, report) = run_doctor(&setting, &[]);
        assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report:#}");
        assert_eq!(report["shells"], json!([{"name": "zsh", "path": shell}]));
        assert_eq!(report["platform"]["os"], OS);
        for part in [
            "landlock",
            "user_namespaces",
            "seccomp",
            "filesystem",
            "network",
            "processes",
            "reasons",
        ] {
            assert!(report["sandbox"].get(part).is_some(), "{part}");
        }
        let state = &report["state"];
        assert_eq!((&state["exists"], &state["writable"]), (&json!(false), &json!(true)));
        assert_eq!(report["self_test"], Value::Null);
    }

    #[test]
    fn a_file_cannot_be_the_state_folder() {
        let setting = TestCli::default();
        let file = setting.write_text("file", "");
        for dir in [file.clone(), format!("{file}/below")] {
            let (_, report) = run_doctor(&setting, &["--state-dir", &dir]);
            assert_eq!(report["state"]["writable"], json!(false), "{dir}");
        }
        let ran = setting.run(&["doctor", "--state-dir", &file]);
        assert!(ran.out.contains("file (not a folder, so no state is stored)\n"), "{}", ran.out);
    }

    #[cfg(unix)]
    #[test]
    fn says_what_a_state_folder_of_everyone_costs() {
        use std::os::unix::fs::PermissionsExt as _;

        let state = tempfile::tempdir().unwrap();
        let run = |mode| {
            std::fs::set_permissions(state.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            run(&["doctor", "--state-dir", state.path().to_str().unwrap()]).out
        };
        let open = run(0o777);
        assert!(open.contains("no approvals, trusted folders, memory or secrets"), "{open}");
        assert!(open.contains(&format!("`chmod 700 {}`", state.path().display())), "{open}");
        assert!(run(0o755).contains("other users can read the state folder"));
        assert!(!run(0o700).contains("state folder"), "{open}");
    }

    // An invalid journal stands for any that cannot be recovered.
    #[cfg(unix)]
    #[test]
    fn recovers_interrupted_changes_unless_the_mode_changes_nothing() {
        let setting = TestCli::default();
        let state = tempfile::tempdir().unwrap();
        let journal = state.path().join("journal");
        std::fs::create_dir(&journal).unwrap();
        std::fs::write(journal.join("1.journal"), "{}").unwrap();
        let args = ["--state-dir", state.path().to_str().unwrap()];
        for mode in ["plan", "explore"] {
            let (_, report) = run_doctor(&setting, &[&args[..], &["--mode", mode]].concat());
            let expected = json!({ "recovered": 0, "left": [], "waiting": 1 });
            assert_eq!(report["interrupted_changes"], expected, "{mode}");
        }
        let told = setting.run(&[&["doctor"][..], &args].concat()).out;
        assert!(told.contains("left        the journal `"), "{told}");
        let (_, report) = run_doctor(&setting, &args);
        assert_eq!(report["interrupted_changes"]["waiting"], json!(0));
    }

    // The test harness has its own `main`, so there is no sandbox helper.
    #[test]
    fn an_unmet_sandbox_requirement_fails() {
        let (code, report) = run_doctor(&TestCli::default(), &["--sandbox=required"]);
        assert_eq!((code, &report["ok"]), (1, &json!(false)));
        let missing = report["missing"][0].as_str().unwrap();
        assert!(missing.starts_with("the sandbox is required: filesystem none"), "{missing}");
        let (code, _) = run_doctor(&TestCli::default(), &["--sandbox=best_effort"]);
        assert_eq!(code, 0);
    }

    // F148: how a provider of web search is configured.
    #[cfg(feature = "net")]
    #[test]
    fn names_the_providers_of_web_search() {
        let told = run(&["doctor"]).out;
        assert!(told.contains("web search  no provider; name one with `--web-search`"), "{told}");
        let told = run(&["doctor", "--web-search=brave", "--web-search=searxng=https://s.example"]);
        let line = "web search  brave with the key `BRAVE_API_KEY`, searxng\n";
        assert!(told.out.contains(line), "{}", told.out);
        let wrong = run(&["doctor", "--web-search=goggle"]);
        assert!(
            wrong.code == 2 && wrong.err.contains("expected one of brave, exa"),
            "{}",
            wrong.err
        );
    }

    #[test]
    fn prints_lines_of_text_by_default() {
        let ran = run(&["doctor"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        for label in ["platform ", "sandbox ", "configured ", "openat2 ", "shells ", "state "] {
            assert!(ran.out.lines().any(|line| line.starts_with(label)), "{label}: {}", ran.out);
        }
    }

    #[test]
    fn counts_skipped_attempts_with_reasons() {
        let attempt = |passed, detail: &str| json!({"name": "x", "allowed": false, "passed": passed, "detail": detail});
        let test: SelfTestReport = serde_json::from_value(json!({
            "status": {"filesystem": "full", "network": "none", "processes": "full", "reasons": []},
            "attempts": [attempt(Some(true), "a"), attempt(None, "b"), attempt(None, "b")],
        }))
        .unwrap();
        assert!(test.has_passed());
        assert_eq!(self_test_summary(&test), "sandbox tests: 1 run, 2 skipped (b)");
    }
}
