//! Sources as people and attackers make them.

use std::fs;
use std::io::{Cursor, Write as _};

use tar::{Builder, EntryType, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

fn limits() -> PackageLimits {
    PackageLimits::default()
}

fn read(bytes: &[u8]) -> Result<SourcePackage, ToolError> {
    read_archive(bytes, Path::new("a.zip"), limits())
}

fn zip(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, bytes) in files {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        if mode & 0o170_000 == 0o120_000 {
            archive.add_symlink(*name, str::from_utf8(bytes).unwrap(), options).unwrap();
            continue;
        }
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A tar file; names are written as they are, also those that `tar` refuses.
fn tar(files: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (name, kind, bytes) in files {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o4755);
        if kind.is_symlink() || kind.is_hard_link() {
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
        }
        header.set_cksum();
        archive.append(&header, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const TEXT: &[u8] = b"---\nname: a\ndescription: d\n---\n";

#[test]
fn a_url_is_told_to_be_fetched_first() {
    for path in ["/w/https:/example.com/x.git", "git@example.com:x/y"] {
        let error = read_source(Path::new(path), limits()).unwrap_err();
        assert!(error.suggestion().unwrap().starts_with("URLs are not fetched"), "{error}");
    }
    assert_eq!(read_source(Path::new("/w/x"), limits()).unwrap_err().suggestion(), None);
}

// F114: each kind of source gives the same package.
#[test]
fn sources_of_every_kind_are_the_same_package() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("a");
    fs::create_dir_all(folder.join("scripts")).unwrap();
    fs::write(folder.join("SKILL.md"), TEXT).unwrap();
    fs::write(folder.join("scripts/run.py"), "print()").unwrap();
    fs::create_dir(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/config"), "[core]\n").unwrap();
    let run: &[u8] = b"print()";
    let zip = zip(&[
        ("SKILL.md", 0o644, TEXT),
        ("scripts/run.py", 0o644, run),
        ("__MACOSX/x", 0o644, b""),
    ]);
    let mut tar = Builder::new(Vec::new());
    for (name, bytes) in [("./SKILL.md", TEXT), ("./scripts/run.py", run)] {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes).unwrap();
    }
    let tar = tar.into_inner().unwrap();
    let packages = [
        read_source(&folder, limits()).unwrap(),
        read(&zip).unwrap(),
        read(&tar).unwrap(),
        read(&gzip(&tar)).unwrap(),
    ];
    for package in &packages {
        assert_eq!(package.package, packages[0].package, "{}", package.kind);
    }
    assert_eq!(packages[0].package.files.len(), 2);
    let kinds = packages.map(|package| package.kind);
    assert_eq!(
        kinds,
        ["git repository", "zip file", "tar file", "tar.gz file"].map(|kind| {
            // Without a commit the folder is one like any other.
            if kind == "git repository" { "folder" } else { kind }
        })
    );
    let bundle = read_archive(&zip, Path::new("x.mcpb"), limits()).unwrap();
    assert_eq!(bundle.kind, "MCP bundle");
}

#[test]
fn the_commit_of_a_repository_is_found_without_git() {
    let temp = tempfile::tempdir().unwrap();
    let git = temp.path().join(".git");
    fs::create_dir_all(git.join("refs/heads")).unwrap();
    fs::create_dir_all(temp.path().join("skills/a")).unwrap();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let find = || git::find_commit(&temp.path().join("skills/a"));
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(find(), None);
    fs::write(git.join("packed-refs"), format!("# pack\n{commit} refs/heads/main\n")).unwrap();
    assert_eq!(find().as_deref(), Some(commit));
    fs::write(git.join("refs/heads/main"), format!("{}\n", commit.replace('0', "f"))).unwrap();
    assert_eq!(find().unwrap(), commit.replace('0', "f"));
    fs::write(git.join("HEAD"), commit).unwrap();
    assert_eq!(find().as_deref(), Some(commit));
    fs::write(git.join("HEAD"), "ref: refs/../../secret\n").unwrap();
    assert_eq!(find(), None);
}

// F114: SK1, CVE-2026-28453, RUSTSEC-2021-0080: names that lead elsewhere.
#[test]
fn archives_whose_names_lead_elsewhere_are_refused() {
    for name in ["../evil", "/etc/evil", "a/../../evil", "a\\evil", "C:evil", "a\u{202e}b"] {
        let error = read(&zip(&[("SKILL.md", 0o644, TEXT), (name, 0o644, b"x")])).unwrap_err();
        assert!(error.message().contains("names a file"), "zip {name}: {}", error.message());
        let file = (name, EntryType::Regular, &b"x"[..]);
        let error = read(&tar(&[("SKILL.md", EntryType::Regular, TEXT), file])).unwrap_err();
        assert!(error.message().contains("names a file"), "tar {name}: {}", error.message());
    }
}

// SK2, CVE-2025-29787: links and devices are not files, and neither is what lies behind them.
#[test]
fn links_and_devices_are_not_read() {
    let package = read(&zip(&[("SKILL.md", 0o644, TEXT), ("link", 0o120_777, b"/etc/passwd")]));
    let package = package.unwrap().package;
    assert_eq!(package.files.len(), 1);
    assert_eq!(package.refused, [("link".to_owned(), "a link")]);
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
        EntryType::Block,
        EntryType::GNUSparse,
    ] {
        let read = read(&tar(&[("SKILL.md", EntryType::Regular, TEXT), ("x", kind, b"")]));
        // What the parser refuses is refused as well.
        if let Ok(package) = read {
            assert_eq!(package.package.files.len(), 1, "{kind:?}");
            assert_eq!(package.package.refused.len(), 1, "{kind:?}");
        }
    }
    #[cfg(unix)]
    {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("SKILL.md"), TEXT).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", temp.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", temp.path().join("folder")).unwrap();
        let package = read_source(temp.path(), limits()).unwrap().package;
        assert_eq!((package.files.len(), package.refused.len()), (1, 2));
    }
}

#[test]
fn set_user_id_is_dropped() {
    let package = read(&tar(&[("run", EntryType::Regular, b"x")])).unwrap().package;
    assert!(package.files["run"].is_executable);
}

// SK3: a small archive of much content, whatever its headers say.
#[test]
fn archives_that_expand_too_far_are_refused() {
    let zeros = vec![0; 9 << 20];
    let names = ["a", "b", "c"];
    let bomb = zip(&names.map(|name| (name, 0o644, &zeros[..])));
    assert!(bomb.len() < 60_000, "{}", bomb.len());
    let error = read(&bomb).unwrap_err();
    assert!(error.message().contains("too large"), "{}", error.message());
    let bomb = gzip(&tar(&names.map(|name| (name, EntryType::Regular, &zeros[..]))));
    let error = read(&bomb).unwrap_err();
    assert!(error.message().contains("too large"), "{}", error.message());
    let many: Vec<String> = (0..10_001).map(|at| format!("f{at}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), 0o644, &b""[..])).collect();
    assert!(read(&zip(&many)).unwrap_err().message().contains("10000 files"));
}

#[test]
fn a_name_that_comes_twice_is_refused() {
    let file = ("SKILL.md", EntryType::Regular, TEXT);
    let error = read(&tar(&[file, file])).unwrap_err();
    assert!(error.message().contains("twice"), "{}", error.message());
    let error = read(&zip(&[("SKILL.md", 0o644, TEXT), ("skill.md", 0o644, b"")])).unwrap_err();
    assert!(error.message().contains("twice"), "{}", error.message());
}

#[test]
fn damaged_and_other_files_are_errors() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x");
    fs::write(&path, "plain text").unwrap();
    let error = read_source(&path, limits()).unwrap_err();
    assert!(error.message().contains("not an archive"), "{}", error.message());
    assert!(read_source(&temp.path().join("gone"), limits()).is_err());
    let whole = zip(&[("SKILL.md", 0o644, TEXT)]);
    assert!(read(&whole[..whole.len() / 2]).is_err());
    let whole = gzip(&tar(&[("SKILL.md", EntryType::Regular, TEXT)]));
    assert!(read(&whole[..whole.len() / 2]).is_err());
    fs::write(&path, vec![b'P'; 200]).unwrap();
    let small = PackageLimits { total_bytes: 100, ..limits() };
    assert!(read_source(&path, small).unwrap_err().message().contains("too large"));
}
