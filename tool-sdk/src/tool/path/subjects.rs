//! What a call touches at a path, for the rules: the path as it was sent, the place to which
//! links lead, and what is special about either.
//!
//! **Invariant:** a path that leads nowhere is no reason to ask; the call says so itself, and
//! touches nothing.

use std::path::{Component, Path, PathBuf};

use super::{Places, WorkspacePath};
use crate::context::Context;
use crate::error::ToolError;
use crate::risk::RiskClass;
use crate::tool::Subject;
use crate::workspace::{ResolvedPath, Workspace};

impl WorkspacePath {
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
    pub(in crate::tool) fn touched(&self, cx: &Context, writes: bool) -> Vec<Subject> {
        self.led(cx, writes).unwrap_or_else(|| vec![Subject::new(&self.0.text)])
    }

    /// What is touched where the path leads; `None` when that is nowhere.
    fn led(&self, cx: &Context, writes: bool) -> Option<Vec<Subject>> {
        let places = self.0.judged.get_or_init(|| self.places(cx).ok());
        places.as_ref().map(|places| self.about(places, writes, cx))
    }

    fn places(&self, cx: &Context) -> Result<Places, ToolError> {
        let workspace = cx.state::<Workspace>()?;
        let asked = workspace.try_resolve(&self.0.text)?;
        let real = match &asked {
            Some(asked) => asked.canonicalize()?,
            None => workspace.resolve_outside(&self.0.text)?,
        };
        Ok(Places { asked, real })
    }

    /// The place of the link that the path is itself, wherever it leads.
    fn place_of_link(&self, cx: &Context) -> Option<Places> {
        let asked = cx.state::<Workspace>().ok()?.try_resolve(&self.0.text).ok()??;
        let real = asked.parent()?.canonicalize().ok()?.join(asked.file_name()?);
        real.is_symlink().then_some(Places { asked: Some(asked), real })
    }

    fn about(&self, Places { asked, real }: &Places, writes: bool, cx: &Context) -> Vec<Subject> {
        let path = |place: &ResolvedPath| {
            Subject::path(place.rule_path(), place.absolute_path()).sent_as(&self.0.text)
        };
        // Most paths lead where they say.
        let elsewhere = asked.as_ref().filter(|asked| !asked.is_same_path(real));
        let target = path(real);
        let sent = match asked {
            Some(_) => elsewhere.map(path),
            None => Some(Subject::new(plain(&self.0.text)).sent_as(&self.0.text)),
        };
        let sent = sent.filter(|sent| sent.text() != target.text());
        let mut subjects: Vec<_> = sent.into_iter().chain([target]).collect();
        let mut also = Vec::new();
        if asked.is_none() {
            // Reading there is no more a matter of course than writing, but it is no writing.
            let class = if writes { RiskClass::Write } else { RiskClass::Read };
            // Where a way through the outside leads back inside, only the way is outside.
            let only_the_way = !real.is_outside() && subjects.len() > 1;
            let outside_ones = &subjects[..subjects.len() - usize::from(only_the_way)];
            // However it is spelt, it is one place, and one reason.
            let why = outside_ones.last().map(|it| special(it.text(), &outside(cx)));
            let under = |it: &Subject| {
                let subject = it.clone().under(Subject::OUTSIDE).class(class).always_asks();
                subject.because(why.clone().unwrap_or_default())
            };
            also.extend(outside_ones.iter().map(under));
        }
        if writes {
            let places = elsewhere.into_iter().chain([real]).filter(|place| place.is_protected());
            let obeyed = "is a file that something executes or obeys later";
            let under = |place| {
                let subject = path(place).under(Subject::PROTECTED).mandatory();
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
