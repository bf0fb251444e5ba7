//! A path as a parameter, which says what a call touches.
//!
//! A path is resolved once, when the call is judged. The place that rules and people saw is
//! the place that the tool gets, whatever becomes of the links that led there.
//!
//! **Invariant:** nothing here opens a file.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Subject;
use crate::context::Context;
use crate::effect::RiskClass;
use crate::error::ToolError;
use crate::workspace::{Located, Snapshot, Workspace};

/// A path that a model sends.
///
/// As a parameter it is a text like any other. What makes it more are its subjects for the
/// rules: the path as it was sent and the place to which links lead, each judged by itself. A
/// tool that names no subjects has those of all paths that came in its arguments, read by a
/// tool that only reads and written by any other.
///
/// On top of that, what is outside of the workspace is asked about as `external_directory`,
/// and a change of what is executed or obeyed later (hooks of git, start-up files, settings
/// of agents) as `protected_path`, so that allowing a tool's own permission allows neither.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Changes, Context, State, ToolError, Workspace, WorkspacePath, tool};
///
/// /// Empty a file.
/// #[tool(write, permission = "edit")]
/// async fn clear(
///     /// The file.
///     path: WorkspacePath,
///     workspace: State<Workspace>,
///     cx: &Context,
/// ) -> Result<String, ToolError> {
///     let place = path.locate(&workspace)?;
///     let locks = workspace.lock([&place]).await;
///     cx.blocking(move |stop| {
///         let _locks = locks;
///         let before = place.snapshot(1024 * 1024)?;
///         Changes::new().write(place, before, "").apply(|| stop.is_stopped())
///     })
///     .await?;
///     Ok(format!("{path} is empty"))
/// }
/// ```
#[derive(Clone, Default)]
pub struct WorkspacePath(Arc<Sent>);

/// A path that was sent, and what became of it; clones share that.
#[derive(Default)]
struct Sent {
    text: String,
    /// Where it led when the call was judged; `None` when that was nowhere.
    judged: OnceLock<Option<Places>>,
    /// What the file said when somebody was shown what becomes of it.
    shown: OnceLock<Snapshot>,
}

/// Where a path leads.
struct Places {
    /// As it was sent; `None` when that is outside of the workspace.
    asked: Option<Located>,
    /// Without links.
    real: Located,
}

impl WorkspacePath {
    /// The path as it was sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The place without links: the one that was judged, or, where nobody judged it, the
    /// one inside the workspace.
    ///
    /// # Errors
    ///
    /// Fails like [`Workspace::resolve`] and [`Located::real`], and with `conflict` when the
    /// path meant nothing while the call was judged.
    pub fn locate(&self, workspace: &Workspace) -> Result<Located, ToolError> {
        let now = || workspace.resolve(&self.0.text)?.real();
        match self.0.judged.get() {
            None => now(),
            Some(Some(places)) => Ok(places.real.clone()),
            Some(None) => {
                now()?;
                Err(ToolError::conflict(format_args!(
                    "`{self}` was just made, after it was decided about; try again"
                )))
            }
        }
    }

    /// Whether the path itself is a symbolic link, wherever it leads: what is done to the file
    /// that it leads to is not done to the link.
    #[must_use]
    pub fn is_link(&self, workspace: &Workspace) -> bool {
        match workspace.find(&self.0.text) {
            Ok(Some(place)) => place.is_link(),
            Ok(None) => workspace.is_link_outside(&self.0.text),
            Err(_) => false,
        }
    }

    /// Keeps what the file says while somebody is shown what becomes of it, and gives what
    /// was kept first.
    ///
    /// A tool that replaces a file as a whole reads it in its preview, and based on what it
    /// finds there when it runs: what is replaced is what was shown.
    pub fn keep_shown(&self, now: Snapshot) -> &Snapshot {
        self.0.shown.get_or_init(|| now)
    }

    /// What the file said when somebody was shown what becomes of it; `None` when nobody
    /// was.
    #[must_use]
    pub fn shown(&self) -> Option<&Snapshot> {
        self.0.shown.get()
    }

    /// What a call touches that reads the path.
    #[must_use]
    pub fn read(&self, cx: &Context) -> Vec<Subject> {
        self.subjects(cx, false)
    }

    /// What a call touches that writes the path.
    #[must_use]
    pub fn written(&self, cx: &Context) -> Vec<Subject> {
        self.subjects(cx, true)
    }

    /// What a call touches that removes what the path leads to. A link through which nothing
    /// can be reached, since it leads out of the workspace or in a circle, goes itself.
    #[must_use]
    pub fn removed(&self, cx: &Context) -> Vec<Subject> {
        self.0.judged.get_or_init(|| self.places(cx).ok().or_else(|| self.place_of_link(cx)));
        self.written(cx)
    }

    fn subjects(&self, cx: &Context, writes: bool) -> Vec<Subject> {
        self.led(cx, writes)
            // The call will say what is wrong, and touch nothing: nobody has to be asked.
            .unwrap_or_else(|| vec![Subject::new(&self.0.text).class(RiskClass::Read)])
    }

    /// What a call touches whose tool does not say what it does with the path. Where that
    /// leads nowhere, the tool may do something else.
    pub(super) fn touched(&self, cx: &Context, writes: bool) -> Vec<Subject> {
        self.led(cx, writes).unwrap_or_else(|| vec![Subject::new(&self.0.text)])
    }

    /// What is touched where the path leads; `None` when that is nowhere.
    fn led(&self, cx: &Context, writes: bool) -> Option<Vec<Subject>> {
        let places = self.0.judged.get_or_init(|| self.places(cx).ok());
        places.as_ref().map(|places| self.about(places, writes, cx))
    }

    fn places(&self, cx: &Context) -> Result<Places, ToolError> {
        let workspace = cx.state::<Workspace>()?;
        let asked = workspace.find(&self.0.text)?;
        let real = match &asked {
            Some(asked) => asked.real()?,
            None => workspace.outside(&self.0.text)?,
        };
        Ok(Places { asked, real })
    }

    /// The path from the top of the file system, with its links; `None` when it leads nowhere.
    #[cfg(feature = "hooks")]
    pub(super) fn absolute(&self, workspace: &Workspace) -> Option<PathBuf> {
        let place = match workspace.find(&self.0.text).ok()? {
            Some(inside) => inside,
            None => workspace.outside(&self.0.text).ok()?,
        };
        Some(place.absolute())
    }

    /// The place of the link that the path is itself, wherever it leads.
    fn place_of_link(&self, cx: &Context) -> Option<Places> {
        let asked = cx.state::<Workspace>().ok()?.find(&self.0.text).ok()??;
        let real = asked.parent()?.real().ok()?.join(asked.file_name()?);
        real.is_link().then_some(Places { asked: Some(asked), real })
    }

    fn about(&self, Places { asked, real }: &Places, writes: bool, cx: &Context) -> Vec<Subject> {
        let path = |place: &Located| Subject::path(place.display(), place.absolute());
        // Most paths lead where they say.
        let elsewhere = asked.as_ref().filter(|asked| !asked.is_at(real));
        let target = path(real);
        let sent = match asked {
            Some(_) => elsewhere.map(path),
            None => Some(Subject::new(plain(&self.0.text))),
        };
        let sent = sent.filter(|sent| sent.text() != target.text());
        // However it is spelt, it is one place, and one reason.
        let outside = asked.is_none().then(|| special(target.text(), &outside(cx)));
        let mut subjects: Vec<_> = sent.into_iter().chain([target]).collect();
        let mut also = Vec::new();
        if let Some(why) = outside {
            // Reading there is no more a matter of course than writing, but it is no writing.
            let class = if writes { RiskClass::Write } else { RiskClass::Read };
            let under = |it: &Subject| {
                let subject = it.clone().under(Subject::OUTSIDE).class(class).always_asks();
                subject.because(why.clone())
            };
            also.extend(subjects.iter().map(under));
        }
        if writes {
            let places = elsewhere.into_iter().chain([real]).filter(|place| place.is_protected());
            let obeyed = "is a file that something executes or obeys later";
            let under = |place| {
                let subject = path(place).under(Subject::PROTECTED);
                let why = special(subject.text(), obeyed);
                subject.because(why)
            };
            also.extend(places.map(under));
            also.dedup();
        }
        subjects.extend(also);
        subjects
    }
}

/// Says of a path what is special about it, with its name.
fn special(path: &str, what: &str) -> String {
    const MAX: usize = 256;
    let name: String = path.chars().take(MAX).collect();
    format!("`{}` {what}", name.escape_debug())
}

/// That a path is outside, and of what.
fn outside(cx: &Context) -> String {
    const MOST: usize = 4;
    let roots: Vec<String> = match cx.state::<Workspace>() {
        Ok(workspace) => workspace.roots().take(MOST).map(|it| it.display().to_string()).collect(),
        Err(_) => Vec::new(),
    };
    format!("is outside the workspace, which is `{}`", roots.join("` and `"))
}

/// The path without `.` and doubled separators: rules know one way to write it.
fn plain(path: &str) -> String {
    let parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().display().to_string()
}

impl<T: Into<String>> From<T> for WorkspacePath {
    fn from(text: T) -> Self {
        Self(Arc::new(Sent { text: text.into(), ..Sent::default() }))
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer).map(Self::from)?;
        DECODED.with_borrow_mut(|decoded| {
            if let Some(decoded) = decoded {
                decoded.push(path.clone());
            }
        });
        Ok(path)
    }
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.text)
    }
}

impl JsonSchema for WorkspacePath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WorkspacePath".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

thread_local! {
    /// The paths that were decoded on this thread, as long as somebody wants to know.
    static DECODED: RefCell<Option<Vec<WorkspacePath>>> = const { RefCell::new(None) };
}

/// What `decode` gives, and every path that it decoded on the way: nobody can tell from
/// outside which paths a value of any type holds.
pub(super) fn decoding<T>(decode: impl FnOnce() -> T) -> (T, Vec<WorkspacePath>) {
    struct Until(Option<Vec<WorkspacePath>>);

    impl Drop for Until {
        fn drop(&mut self) {
            DECODED.set(self.0.take());
        }
    }

    let mut until = Until(DECODED.replace(Some(Vec::new())));
    let value = decode();
    let paths = DECODED.take().unwrap_or_default();
    // Whoever wants to know of more than this wants to know of this too.
    if let Some(outer) = &mut until.0 {
        outer.extend(paths.iter().cloned());
    }
    (value, paths)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::call::CallId;
    use crate::context::Session;
    use crate::error::ErrorKind;
    use crate::name::ToolName;

    fn folder() -> (TempDir, Workspace, Context) {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/a"), "text").unwrap();
        let workspace = Workspace::open([folder.path()]).unwrap();
        let session = Session::new("s").lend(workspace.clone());
        let cx = Context::new(session, ToolName::from_static("t"), CallId::given("c"));
        (folder, workspace, cx)
    }

    /// Each subject as `permission:text`.
    fn said(subjects: &[Subject]) -> Vec<String> {
        let said = |it: &Subject| format!("{}:{}", it.permission().unwrap_or("-"), it.text());
        subjects.iter().map(said).collect()
    }

    #[test]
    fn what_is_outside_says_so_and_where_inside_is() {
        let (folder, _, cx) = folder();
        let elsewhere = TempDir::new().unwrap();
        let place = elsewhere.path().canonicalize().unwrap();
        fs::create_dir(place.join("b")).unwrap();
        let path = place.join("a");
        // Spelt in a second way it is one more subject, and no other reason.
        let text = format!("{}/b/../a", place.display());
        let subjects = [path.to_str().unwrap(), &text].map(|it| WorkspacePath::from(it).read(&cx));
        let reasons: Vec<&str> = subjects.iter().flatten().filter_map(Subject::reason).collect();
        let root = folder.path().canonicalize().unwrap();
        let [path, root] = [&path, &root].map(|path| path.display());
        let reason = format!("`{path}` is outside the workspace, which is `{root}`");
        assert_eq!(reasons, [reason.as_str(); 3]);
        assert!(WorkspacePath::from("src/a").read(&cx).iter().all(|it| it.reason().is_none()));
    }

    #[test]
    fn a_path_is_one_subject_in_plain_form() {
        let (_folder, workspace, cx) = folder();
        for text in ["src/a", "./src//a", "src/./a", "src/a/"] {
            let path = WorkspacePath::from(text);
            let subjects = path.written(&cx);
            assert_eq!(said(&subjects), ["-:src/a"], "{text}");
            let place = path.locate(&workspace).unwrap();
            assert_eq!(subjects[0].absolute(), Some(&*place.absolute()), "{text}");
        }
        assert_eq!(
            said(&WorkspacePath::from("src/../src/new").written(&cx)),
            ["-:src/../src/new", "-:src/new"]
        );
    }

    proptest! {
        // PA1, PA7: whatever is said of a place does not depend on how it is written.
        #[test]
        fn detours_that_lead_nowhere_change_nothing(
            names in prop::collection::vec(
                prop::sample::select(vec!["src", "a", "..", ".git", ".envrc", "new"]), 1..6,
            ),
            detours in prop::collection::vec(
                prop::sample::select(vec!["/", "//", "/./", "/.//"]), 6,
            ),
            writes in any::<bool>(),
        ) {
            let (_folder, workspace, cx) = folder();
            let plain = names.join("/");
            let mut winding = String::from("./");
            for (name, detour) in names.iter().zip(&detours) {
                winding.extend([*name, *detour]);
            }
            let [plain, winding] = [plain, winding].map(|text| {
                let path = WorkspacePath::from(text);
                let subjects = if writes { path.written(&cx) } else { path.read(&cx) };
                let place = path.locate(&workspace).map(|place| place.absolute());
                let judged = place.is_ok().then_some(subjects);
                (judged, place.map_err(|error| error.kind()))
            });
            prop_assert_eq!(plain, winding);
        }
    }

    // PA7: by name, in any folder, whether it exists or not; only for writing.
    #[test]
    fn what_runs_later_is_asked_about() {
        let (_folder, _, cx) = folder();
        let path = WorkspacePath::from(".git/hooks/pre-commit");
        assert_eq!(said(&path.read(&cx)), ["-:.git/hooks/pre-commit"]);
        assert_eq!(
            said(&path.written(&cx)),
            ["-:.git/hooks/pre-commit", "protected_path:.git/hooks/pre-commit"]
        );
    }

    #[test]
    fn what_is_outside_is_asked_about() {
        let (_folder, workspace, cx) = folder();
        let other = TempDir::new().unwrap();
        fs::create_dir(other.path().join("sub")).unwrap();
        let real = other.path().canonicalize().unwrap().join("new");
        let (asked, real) = (other.path().join("sub/../new"), real.to_str().unwrap());
        let path = WorkspacePath::from(other.path().join("./sub//../new").to_str().unwrap());
        assert_eq!(path.locate(&workspace).unwrap_err().kind(), ErrorKind::Denied);

        let subjects = path.read(&cx);
        let asked = asked.to_str().unwrap();
        assert_eq!(
            said(&subjects),
            [
                format!("-:{asked}"),
                format!("-:{real}"),
                format!("external_directory:{asked}"),
                format!("external_directory:{real}"),
            ]
        );
        let asks = |subjects: &[Subject], class| {
            let said = |it: &Subject| (it.risk_class(), it.is_asked_about());
            assert!(subjects[2..].iter().all(|it| said(it) == (Some(class), true)));
        };
        asks(&subjects, RiskClass::Read);
        asks(&path.written(&cx), RiskClass::Write);

        // Whoever reads it now has been judged.
        let place = path.locate(&workspace).unwrap();
        assert_eq!(place.display(), real);
        fs::write(real, "text").unwrap();
        assert_eq!(place.snapshot(9).unwrap().content(), Some(&b"text"[..]));
    }

    #[test]
    fn what_cannot_be_is_not_asked_about() {
        let (folder, workspace, cx) = folder();
        for (text, kind) in [("", ErrorKind::InvalidArgs), ("nope/../a", ErrorKind::NotFound)] {
            let path = WorkspacePath::from(text);
            assert_eq!(path.written(&cx)[0].risk_class(), Some(RiskClass::Read), "{text:?}");
            assert_eq!(path.locate(&workspace).unwrap_err().kind(), kind, "{text:?}");
        }
        let path = WorkspacePath::from("nope/../a");
        let _ = path.written(&cx);
        fs::create_dir(folder.path().join("nope")).unwrap();
        assert_eq!(path.locate(&workspace).unwrap_err().kind(), ErrorKind::Conflict);
    }

    #[cfg(unix)]
    mod links {
        use std::os::unix::fs::symlink;

        use super::*;

        // PA6: rules on either spelling hold.
        #[test]
        fn a_link_and_its_target_are_subjects() {
            let (folder, _, cx) = folder();
            symlink("src", folder.path().join("link")).unwrap();
            let path = WorkspacePath::from("link/a");
            assert_eq!(said(&path.written(&cx)), ["-:link/a", "-:src/a"]);
            symlink("../.git", folder.path().join("src/git")).unwrap();
            fs::create_dir(folder.path().join(".git")).unwrap();
            assert_eq!(
                said(&WorkspacePath::from("src/git/config").written(&cx)),
                ["-:src/git/config", "-:.git/config", "protected_path:.git/config"]
            );
        }

        #[test]
        fn what_was_judged_is_what_is_opened() {
            let (folder, workspace, cx) = folder();
            fs::create_dir(folder.path().join("other")).unwrap();
            fs::write(folder.path().join("other/a"), "secret").unwrap();
            symlink("src", folder.path().join("link")).unwrap();
            let path = WorkspacePath::from("link/a");
            let _ = path.read(&cx);
            fs::remove_file(folder.path().join("link")).unwrap();
            symlink("other", folder.path().join("link")).unwrap();
            let place = path.locate(&workspace).unwrap();
            assert_eq!(place.snapshot(9).unwrap().content(), Some(&b"text"[..]));

            fs::remove_dir_all(folder.path().join("src")).unwrap();
            symlink("other", folder.path().join("src")).unwrap();
            assert!(place.open_file().is_err());
        }

        #[test]
        fn a_link_that_leads_out_stays_refused() {
            let (folder, workspace, cx) = folder();
            symlink("/etc", folder.path().join("out")).unwrap();
            let path = WorkspacePath::from("out/passwd");
            assert_eq!(path.read(&cx)[0].risk_class(), Some(RiskClass::Read));
            assert_eq!(path.locate(&workspace).unwrap_err().kind(), ErrorKind::Denied);
        }
    }
}
