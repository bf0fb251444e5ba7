//! The resources of paths, and the locations at which calls run.

use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::call::CallId;
use crate::context::{Context, Session};
use crate::error::ErrorKind;
use crate::name::ToolName;
use crate::risk::RiskClass;
use crate::tool::Resource;

fn folder() -> (TempDir, Workspace, Context) {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/a"), "text").unwrap();
    let workspace = Workspace::open([folder.path()]).unwrap();
    let session = Session::new("s").with_service(workspace.clone());
    let cx = Context::new(session, ToolName::from_static("t"), CallId::from_external("c"));
    (folder, workspace, cx)
}

/// Formats each resource as `permission:text`.
fn describe_resources(subjects: &[Resource]) -> Vec<String> {
    let said = |it: &Resource| format!("{}:{}", it.permission().unwrap_or("-"), it.text());
    subjects.iter().map(said).collect()
}

#[test]
fn what_is_outside_says_so_and_where_inside_is() {
    let (folder, _, cx) = folder();
    let elsewhere = TempDir::new().unwrap();
    let place = elsewhere.path().canonicalize().unwrap();
    fs::create_dir(place.join("b")).unwrap();
    let path = place.join("a");
    // A second spelling is one more resource with the same reason.
    let text = format!("{}/b/../a", place.display());
    let subjects =
        [path.to_str().unwrap(), &text].map(|it| WorkspacePath::from(it).read_resources(&cx));
    let reasons: Vec<&str> = subjects.iter().flatten().filter_map(Resource::reason).collect();
    let root = folder.path().canonicalize().unwrap();
    let [path, root] = [&path, &root].map(|path| path.display());
    let reason = format!("`{path}` is outside the workspace, which is `{root}`");
    assert_eq!(reasons, [reason.as_str(); 3]);
    assert!(
        WorkspacePath::from("src/a").read_resources(&cx).iter().all(|it| it.reason().is_none())
    );
}

#[test]
fn a_path_is_one_subject_in_plain_form() {
    let (_folder, workspace, cx) = folder();
    for text in ["src/a", "./src//a", "src/./a", "src/a/"] {
        let path = WorkspacePath::from(text);
        let subjects = path.write_resources(&cx);
        assert_eq!(describe_resources(&subjects), ["-:src/a"], "{text}");
        let place = path.locate(&workspace).unwrap();
        assert_eq!(subjects[0].absolute(), Some(&*place.absolute_path()), "{text}");
    }
    assert_eq!(
        describe_resources(&WorkspacePath::from("src/../src/new").write_resources(&cx)),
        ["-:src/../src/new", "-:src/new"]
    );
}

proptest! {
    // PA1, PA7: the resources of a path do not depend on how it is written.
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
            let subjects = if writes { path.write_resources(&cx) } else { path.read_resources(&cx) };
            let place = path.locate(&workspace).map(|place| place.absolute_path());
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
    assert_eq!(describe_resources(&path.read_resources(&cx)), ["-:.git/hooks/pre-commit"]);
    assert_eq!(
        describe_resources(&path.write_resources(&cx)),
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

    let subjects = path.read_resources(&cx);
    let asked = asked.to_str().unwrap();
    assert_eq!(
        describe_resources(&subjects),
        [
            format!("-:{asked}"),
            format!("-:{real}"),
            format!("external_directory:{asked}"),
            format!("external_directory:{real}"),
        ]
    );
    let asks = |subjects: &[Resource], class| {
        let said = |it: &Resource| (it.risk_class(), it.is_asked_by_default());
        assert!(subjects[2..].iter().all(|it| said(it) == (Some(class), true)));
    };
    asks(&subjects, RiskClass::Read);
    asks(&path.write_resources(&cx), RiskClass::Write);

    // The location that is read now was authorized.
    let place = path.locate(&workspace).unwrap();
    assert_eq!(place.display(), real);
    fs::write(real, "text").unwrap();
    assert_eq!(place.snapshot(9).unwrap().content(), Some(&b"text"[..]));
}

#[test]
fn a_detour_that_ends_inside_is_asked_about_and_its_end_is_not() {
    let (folder, workspace, cx) = folder();
    let root = folder.path().canonicalize().unwrap();
    let name = root.file_name().unwrap().to_str().unwrap();
    let sent = format!("{}/../{name}/src/a", root.display());
    let path = WorkspacePath::from(sent.as_str());
    let expected = [format!("-:{sent}"), "-:src/a".into(), format!("external_directory:{sent}")];
    assert_eq!(describe_resources(&path.read_resources(&cx)), expected);
    assert_eq!(path.locate(&workspace).unwrap().display(), "src/a");
}

#[test]
fn what_cannot_be_is_not_asked_about() {
    let (folder, workspace, cx) = folder();
    for (text, kind) in [("", ErrorKind::InvalidArgs), ("nope/../a", ErrorKind::NotFound)] {
        let path = WorkspacePath::from(text);
        assert_eq!(path.write_resources(&cx)[0].risk_class(), Some(RiskClass::Read), "{text:?}");
        assert_eq!(path.locate(&workspace).unwrap_err().kind(), kind, "{text:?}");
    }
    let path = WorkspacePath::from("nope/../a");
    let _ = path.write_resources(&cx);
    fs::create_dir(folder.path().join("nope")).unwrap();
    assert_eq!(path.locate(&workspace).unwrap_err().kind(), ErrorKind::Conflict);
}

// F92: no user is asked to approve what cannot happen.
#[test]
fn writing_to_a_folder_that_may_only_be_read_is_refused_at_once() {
    let (_folder, workspace, _) = folder();
    let lent = TempDir::new().unwrap();
    let workspace = workspace.with_read_only(lent.path()).unwrap();
    let session = Session::new("s").with_service(workspace);
    let cx = Context::new(session, ToolName::from_static("t"), CallId::from_external("c"));
    let place = lent.path().canonicalize().unwrap().join("page");
    let path = WorkspacePath::from(place.to_str().unwrap());
    let refusal = |subjects: &[Resource]| subjects.iter().find_map(Resource::refusal);
    assert!(refusal(&path.read_resources(&cx)).is_none());
    let error = refusal(&path.write_resources(&cx)).unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().ends_with("is in a folder that may only be read"), "{error}");
    let inside = WorkspacePath::from("src/a");
    assert!(refusal(&inside.write_resources(&cx)).is_none());
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    // PA6: rules on either spelling apply.
    #[test]
    fn a_link_and_its_target_are_subjects() {
        let (folder, _, cx) = folder();
        symlink("src", folder.path().join("link")).unwrap();
        let path = WorkspacePath::from("link/a");
        assert_eq!(describe_resources(&path.write_resources(&cx)), ["-:link/a", "-:src/a"]);
        symlink("../.git", folder.path().join("src/git")).unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(
            describe_resources(&WorkspacePath::from("src/git/config").write_resources(&cx)),
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
        let _ = path.read_resources(&cx);
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
        assert_eq!(path.read_resources(&cx)[0].risk_class(), Some(RiskClass::Read));
        assert_eq!(path.locate(&workspace).unwrap_err().kind(), ErrorKind::Denied);
    }
}
